"""A captured run explained: one model (``model.py``) behind the page, the Markdown index and the manifest.

Nothing here imports ``torch``: a page can be made from a dump or a trace log on a machine without it.
"""
