"""The results of the public questions (``why``, ``compare``, ``trace``, ...) as data, as text and as tables.

Nothing here imports ``torch`` or reads a program: ``dynamo/questions`` makes the objects. May import ``diagnosis``.
Start reading at ``why.py``, the result of ``why``.
"""
