"""``full_code_for_<function>_<n>.py``: one user function with all its cache entries as one importable file.

``story`` collects what is known of the function, ``functions`` and ``original`` write it as text, ``runtime`` is what
such a file calls when it runs. Start reading at ``writing.py``.
"""
