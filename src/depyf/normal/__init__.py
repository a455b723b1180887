"""The normal form: one small set of operations for all Pythons, which says what bytecode means.

``ops`` has the operations, ``v38`` to ``v315`` the rules of each version. May import ``bytecode``. Start reading at
``ops.py``, then ``lowering.py``.
"""
