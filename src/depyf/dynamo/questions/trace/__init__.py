"""``depyf.trace``: what ran, in which order, while a program runs.

Events are numbers in a buffer of each thread (``lanes``). Full buffers are folded (``folding``, ``turns``); the result
is made when it is asked for (``record``). Start reading at ``question.py``.
"""
