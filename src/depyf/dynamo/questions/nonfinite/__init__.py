"""``depyf.find_nonfinite``: the first operation that makes a NaN or an Inf.

``origin`` replays a graph whose result is not finite, ``verdict`` selects the node that is reported, ``describe`` makes
the result in the user's terms. Start reading at ``question.py``.
"""
