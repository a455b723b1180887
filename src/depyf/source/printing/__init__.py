"""Trees to the text that a person reads: literals, f-strings, parentheses, long lines, blank lines.

``unparsing`` makes plain text, ``text`` puts all steps in order. May import the modules of ``source`` itself. Start
reading at ``text.py``.
"""
