"""Decompile and verify every code object of many files, and list those that are not proved, with the reason.

``edited_files.py`` compares a file that a person has edited with the original.
May import the decompiler (``decompiler``, ``pipeline`` and below). Start reading at ``pool.py``.
"""
