"""From a callable to the code that Dynamo compiles and the cache entries that a call of it looks through.

``call_target`` unwraps the wrappers around compiled functions; it is the only module that does. May import ``hooks``
and ``guards``. Start reading at ``call_target.py``.
"""
