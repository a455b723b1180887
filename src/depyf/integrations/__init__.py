"""Callbacks for training frameworks: dump the first steps, watch for recompilations, write the page.

A module for each framework, which imports it; they import ``dynamo/`` and ``recording.py``, which they share. Start
reading at ``recording.py``.
"""
