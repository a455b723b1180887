"""From a graph of nodes to nested statements: ``if``, loops, ``try``, ``with``; a dispatch loop for what fits none of
them.

May import ``lift`` and what is below. Start reading at ``structurer.py``.
"""
