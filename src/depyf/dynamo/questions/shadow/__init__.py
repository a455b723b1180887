"""``depyf.shadow``: while a program runs, sampled calls of its compiled code run eagerly, too, on copies.

Rooms: imports ``compare/``, whose copies, snapshots and judge it uses, and rooms below. Start reading at
``question.py``.
"""
