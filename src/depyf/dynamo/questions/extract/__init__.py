"""``depyf.extract``: one compiled graph as a script, for a bug report.

``sources`` finds the graphs, and the names under which they can be requested. Uses ``compare``, which runs copies of
the function. Start reading at ``question.py``.
"""
