"""Functions, classes, lambdas, comprehensions and type parameters: nested code objects as the syntax that they were.

``missing`` and ``holes`` replace those that can't be decompiled. May import everything of ``source``. Start reading at
``nested.py``.
"""
