"""The model of a run as plain data, and facts derived from it: counts, phases, locations.

``manifest`` writes it as JSON and reads it back. Imports nothing of ``report``. Start reading at ``run.py``.
"""
