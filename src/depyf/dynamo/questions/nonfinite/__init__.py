"""``depyf.find_nonfinite``: find the first operation that produces a NaN or an Inf.

``origin`` replays a graph whose result is not finite, ``verdict`` selects the node that is reported, ``describe`` makes
the result in the user's terms. Start reading at ``question.py``.
"""
