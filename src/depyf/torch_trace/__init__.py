"""PyTorch's structured trace as events, from the process or from a log file, and parsers of the events.

Also what every reader and writer of a dump shares: ``file_names`` (the names of its files), ``launches`` (which launch
a followed process belongs to), ``user_code`` (which files are the user's own). ``stages`` is the table of the stages of
a compilation. Not responsible for combining events into a run: that is ``report.analysis``. Imports no ``torch``; may
import ``decompiler.syntax`` and ``base``. Start reading at ``events.py``.
"""
