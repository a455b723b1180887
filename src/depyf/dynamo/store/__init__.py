"""The dump directory: atomic files, several processes that write to it, and names that are the same in every run.

May import ``hooks``. Start reading at ``directory.py``.
"""
