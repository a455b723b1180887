"""Render runs: the page, the Markdown index, the summary in the terminal and in a notebook.

``page`` and ``page_data`` make ``index.html``; its script and styles are in ``web``. May import everything of
``report``. Start reading at ``writing.py``.
"""
