"""``depyf.probe``: record the tensors that the user's names are bound to in compiled code.

``bindings`` records names while Dynamo traces, ``backend`` runs the captured graph beside each call. Start reading at
``question.py``.
"""
