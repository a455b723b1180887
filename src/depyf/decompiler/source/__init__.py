"""Turn the statements into a readable syntax tree, its text, and the code compiled from that text.

From the bottom up: the modules at the top of the folder; ``printing``; ``compiling``; ``passes``; ``author_form``;
``definitions``. May import ``structure`` and the layers below. Start reading at ``source_text.py``.
"""
