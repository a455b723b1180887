"""From a graph of nodes to nested statements: ``if``, loops, ``try``, ``with``, or a dispatch loop as the last resort.

May import ``lift`` and the layers below. Start reading at ``sequences.py``, which follows control and writes the
statements; where each kind of statement ends is found by a module of its own (``branches.py``, ``loops.py``,
``try_statements.py``, ...). The last resort is ``dispatch/loop.py``.
"""
