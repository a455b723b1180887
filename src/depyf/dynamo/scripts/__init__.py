"""One graph, or one operation, as a standalone Python program that needs PyTorch and not depyf.

``whole`` puts a script together, the other modules make its parts: the code of the graph, inputs, imports, operators,
the backend. May import ``observe`` and what is below. Start reading at ``whole.py``.
"""
