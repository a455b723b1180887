"""``depyf run``: a program run unchanged, with everything that it compiles dumped, and a summary at its end.

May import ``dynamo``, ``report`` and what is below. Start reading at ``runner.py``.
"""
