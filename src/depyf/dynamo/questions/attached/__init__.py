"""What ``depyf attach`` asks of a running process: what it compiles now, what it has compiled, and sessions.

Runs in the process that is asked, at any line of the program. May import all of ``dynamo``. Start reading at
``answering.py``.
"""
