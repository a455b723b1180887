"""Functions, classes, lambdas, comprehensions and type parameters: nested code objects as the syntax they were.

``missing`` and ``holes`` are what stands in the place of those that can't be had. Start reading at ``nested.py``.
"""
