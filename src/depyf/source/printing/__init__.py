"""Trees to the text that a person reads: literals, f-strings, parentheses, long lines, blank lines.

``unparsing`` makes plain text, ``text`` puts all steps in order. Start reading at ``text.py``.
"""
