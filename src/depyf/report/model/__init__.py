"""What is known about a run, as plain data, and what everything else takes from it: counts, phases, places.

``manifest`` writes it as JSON and reads it back. Imports nothing of ``report``. Start reading at ``run.py``.
"""
