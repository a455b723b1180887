"""Runs beside each other: before and after a change, and the ranks of one program.

``matching`` says what is the same in two runs. May import ``model`` and ``analysis``. Start reading at
``comparison.py``.
"""
