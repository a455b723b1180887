"""Sessions: when hooks are installed and removed, and what is written at the end.

``prepare`` and ``pausing`` are ``prepare_debug`` and ``debug``; ``active_sessions`` installs all hooks while a session
is open. The other modules write one kind of file each. May import everything of ``dynamo`` up to ``capture``. Start
reading at ``prepare.py``.
"""
