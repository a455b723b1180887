"""Every touch of PyTorch's private parts, and how patches are made, undone and kept from failing.

``compat`` looks up private names, ``patching`` replaces attributes and puts them back, ``safely`` keeps exceptions of
depyf out of the user's program. The other modules are one hook each. Imports ``torch_trace`` and nothing else of
``dynamo``. Start reading at ``compat.py``.
"""
