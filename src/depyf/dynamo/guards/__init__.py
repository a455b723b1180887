"""Guards of cache entries: read from Dynamo, as text, as Python, evaluated, and with the values that they look at.

``tree`` and ``python_guards`` read them, ``to_python`` turns PyTorch's text of one guard into an expression,
``entry_guards`` makes a function of all of an entry, ``failing`` finds those that fail for a call. May import
``hooks``. Start reading at ``entry_guards.py``.
"""
