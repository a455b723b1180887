"""The patterns of ``match`` statements, read from the tests to which the compiler turns them.

May import ``flow/`` itself and the layers below. Start reading at ``patterns.py``.
"""
