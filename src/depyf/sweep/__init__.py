"""Decompile and verify every code object of many files, and say by name which could not be proved and why."""
