"""Makes of the statements a syntax tree that reads well, its text, and the code compiled from that text.

From the bottom up: the modules at the top of the folder; ``printing``; ``compiling``; ``passes``; ``written``;
``definitions``. May import ``structure`` and what is below. Start reading at ``source_text.py``.
"""
