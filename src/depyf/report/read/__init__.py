"""Whatever was captured, read as runs: dumps with a manifest, dumps without one, logs of torch's trace.

What is read may be damaged or a stranger's: nothing of it is run. May import ``model``, ``analysis`` and ``diff``.
Start reading at ``reading.py``.
"""
