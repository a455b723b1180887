"""Decompile and verify every code object of many files, and list those that are not proved, with the reason.

May import the decompiler (``decompiler``, ``pipeline`` and below). Start reading at ``pool.py``.
"""
