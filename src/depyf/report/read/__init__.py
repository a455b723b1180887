"""Read runs from dumps with a manifest, dumps without one, and logs of torch's trace. The input may be damaged or
untrusted: none of it is executed. May import ``model``, ``analysis`` and ``diff``. Start reading at ``reading.py``.
"""
