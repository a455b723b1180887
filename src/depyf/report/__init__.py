"""A captured run explained: one model behind the page, the Markdown index and the manifest.

Nothing here imports ``torch``: a page can be made from a dump or a trace log on a machine without it. From the bottom
up: ``model``; ``analysis`` (from events to the model); ``diff`` (two runs, several ranks); ``read`` (from dumps and
logs to runs); ``render`` (page, index, summary). Start reading at ``model/run.py``.
"""
