"""``depyf.trace``: what ran, in which order, while a program runs.

Numbers are noted for each thread (``lanes``), folded when a list is full (``folding``, ``turns``) and made into the
answer when somebody asks (``record``). Start reading at ``question.py``.
"""
