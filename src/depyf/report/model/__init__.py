"""The model of a run, as plain data, and what is derived from it: counts, phases, places.

``manifest`` writes it as JSON and reads it back. Imports nothing of ``report``. Start reading at ``run.py``.
"""
