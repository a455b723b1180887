"""The normal form: one small instruction set for all Python versions, with defined semantics.

``ops`` defines the operations, ``v38`` to ``v315`` the rules of each version. May import ``bytecode``. Start reading at
``ops.py``, then ``lowering.py``.
"""
