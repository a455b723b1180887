"""``depyf.trace``: record what runs, and in which order. Events are numbers in a buffer per thread (``lanes``). Full
buffers are folded (``folding``, ``turns``); the result is built on request (``record``). Start reading at
``question.py``.
"""
