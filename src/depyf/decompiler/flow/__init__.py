"""Build the flow graph: basic blocks and protected regions; merge the copies that the compiler made of whole blocks.

May import ``normal`` and ``bytecode``. Start reading at ``graph.py``.
"""
