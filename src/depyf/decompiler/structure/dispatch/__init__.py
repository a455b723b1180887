"""The dispatch loop: ``while True`` over a state variable, for control flow that fits no statement of Python.

After Bahmann, Reissmann, Jahre, Meyer, "Perfect Reconstructability of Control Flow from Demand Dependence Graphs", TACO
2015. Every well-formed code object has a rendering this way. May import ``structure/`` itself and the layers below.
Start reading at ``loop.py``.
"""
