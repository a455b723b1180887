"""Trees to the text shown to the user, in one pass: parentheses where they are needed, literals, f-strings, docstrings,
long lines, blank lines.

``expressions`` and ``statements`` are one printer, the same on all Pythons; ``statements.unparse`` prints any tree with
it. May import the modules of ``source`` itself. Start reading at ``text.py``.
"""
