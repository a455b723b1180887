"""Sessions for the user, and the files about a whole session.

``prepare`` and ``pausing`` are ``prepare_debug`` and ``debug``; ``session_files`` writes when the hub of ``capture``
flushes or ends a session. The other modules write one kind of file each. May import everything of ``dynamo`` up to
``capture``. Start reading at ``prepare.py``.
"""
