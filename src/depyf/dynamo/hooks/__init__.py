"""Every use of PyTorch's private names, and how patches are installed, undone and kept from failing.

``private_names`` is the table of the names that depyf relies on, ``patching`` replaces attributes and restores them,
``safely`` keeps exceptions of depyf out of the user's program. The other modules are one hook or one concept of PyTorch
each. May import ``torch_trace`` and what is below, and nothing else of ``dynamo``. Start reading at
``private_names.py``.
"""
