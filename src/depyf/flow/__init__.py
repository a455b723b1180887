"""Basic blocks, protected regions, dominators and loops; merges the copies that the compiler made of whole blocks.

May import ``normal`` and ``bytecode``. Start reading at ``graph.py``.
"""
