"""Symbolic execution of the stack: blocks of operations become nodes, which are statements with a terminator.

``rules`` defines the effect of each operation. May import ``flow`` and the layers below. Start reading at
``nodes.py``, then ``lifter.py``.
"""
