"""``depyf.trace``: record what runs, and in which order.

Events are numbers in a buffer per thread (``lanes``). Full buffers are folded (``folding``); the result is built on
request (``record``). ``graphs`` times compiled graphs. Start reading at ``question.py``.
"""
