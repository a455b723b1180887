"""Record what torch compiles, and make code run from files.

``session`` holds the records, which are only ever added; ``hub`` installs all hooks while a session is open. The other
modules each turn one thing that torch reports (graphs, kernels, wrappers, transformed code, fallbacks) into records and
files. May import ``hooks``, ``guards``, ``entries`` and ``store``. Start reading at ``session.py``.
"""
