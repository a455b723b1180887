"""Compare runs: before and after a change, and the ranks of one program. ``matching`` matches the parts of two runs.
May import ``model`` and ``analysis``. Start reading at ``comparison.py``.
"""
