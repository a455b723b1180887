"""``depyf run``: run a program unchanged, dump everything that it compiles, and print a summary at its end.

May import ``dynamo``, ``report`` and the layers below. Start reading at ``runner.py``.
"""
