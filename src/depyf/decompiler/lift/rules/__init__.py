"""The effect of each operation on the symbolic stack and the statements: a file for each topic.

May import everything of ``lift``. Start reading at ``table.py``, which lists them all.
"""
