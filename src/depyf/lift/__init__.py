"""Symbolic execution of the stack: blocks of operations become nodes, which are statements with a terminator.

``rules`` says what each operation does. May import ``flow`` and what is below. Start reading at ``nodes.py``, then
``lifter.py``.
"""
