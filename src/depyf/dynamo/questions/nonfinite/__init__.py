"""``depyf.find_nonfinite``: the first operation that makes a NaN or an Inf.

``origin`` replays a graph whose result is not finite, ``verdict`` chooses which node of the chain is told, ``describe``
turns it into the answer. Start reading at ``question.py``.
"""
