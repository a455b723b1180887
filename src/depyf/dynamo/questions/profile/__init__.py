"""``depyf.profile``: milliseconds on the user's lines, beside eager mode.

``measuring`` runs the calls, ``marks`` shows kernels to the profiler, ``spans`` reads what it recorded. ``units``
divides that into work and overhead. ``listing`` and ``align`` find where eager operations and library calls are called,
``owners`` the lines of kernels and graph nodes; ``attribution`` puts all together. Start reading at ``question.py``.
"""
