"""``depyf.compare``: compare eager mode with compiled code, down to the first operation that differs.

A private copy (``private_copy``) runs stage by stage (``stage_runs``), results are compared with float64 (``judging``),
and the first wrong operation is located (``locate``, ``culprit``) from values of their time (``node_values``), and
confirmed in another process (``confirm``, ``mending``). Start reading at ``question.py``.
"""
