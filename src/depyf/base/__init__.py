"""The ground floor: what both halves of depyf need and what knows nothing of either.

Exceptions from outside, messages, fast dataclasses, text and files of strangers. Imports nothing else of depyf. Start
reading at ``asynchronous.py``.
"""
