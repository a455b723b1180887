"""PyTorch's structured trace as events, from the process or from a log file, and parsers of the events.

``stages`` is the table of the stages of a compilation. Imports no ``torch``; may import the decompiler. Start reading
at ``events.py``.
"""
