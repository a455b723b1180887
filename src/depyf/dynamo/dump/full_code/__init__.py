"""``full_code_for_<function>_<n>.py``: one user function with all its cache entries as one importable file.

``story`` collects the facts about the function, ``functions`` and ``original`` write them as text, ``runtime`` has the
helpers that such a file calls. Start reading at ``writing.py``.
"""
