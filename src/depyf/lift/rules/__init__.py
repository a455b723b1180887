"""What each operation does to the symbolic stack and to the statements: a file for each topic.

May import everything of ``lift``. Start reading at ``table.py``, which has them all.
"""
