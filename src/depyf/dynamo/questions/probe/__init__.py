"""``depyf.probe``: record the tensors that the user's names are bound to in compiled code.

``bindings`` records names while Dynamo traces, ``captured`` subscribes to the graphs that bind a requested name,
``question`` replays their calls up to the values. Start reading at ``question.py``.
"""
