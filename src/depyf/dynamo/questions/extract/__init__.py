"""``depyf.extract``: one compiled graph as a script, for a bug report.

``sources`` says where graphs come from, ``ids`` by which names they can be asked for. Builds on ``compare``, which runs
copies of the function. Start reading at ``question.py``.
"""
