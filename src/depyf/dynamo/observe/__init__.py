"""Calls of compiled graphs, observed without changing what they compute.

``observation`` is the one recorder of a call: it keeps the inputs from before the call, the results and the state of
the random numbers, and passes them to observers. ``recorder`` puts it around each graph on its way to the user's
backend, ``shadow_entries`` compiles the called functions for observers only and removes the entries afterwards,
``replay`` runs a call of a graph once more, node by node. May import everything of ``dynamo`` up to ``dump``. Start
reading at ``observation.py``.

The questions differ in where they take graphs from:

- ``find_nonfinite`` takes the innermost graph of each compilation (``GraphRecorder``, ``inner=True``).
- ``probe`` takes Dynamo's graph (``inner=False``), and subscribes to those graphs that bind a requested name.
- ``compare`` and ``extract`` compile a private copy of the function, so they need no shadow entries: their recorder
  (``StageRecorder`` in ``questions/compare/recorded.py``) is the backend of that copy. It also keeps graphs that are
  never called, such as the joint graph, and the compiler of each. The calls are recorded by an ``Observation``.
- ``trace`` times code that is compiled already and compiles nothing. It keeps no inputs and no results, only numbers in
  a buffer per thread, because a call may take microseconds. So it puts a timer around the compiled callables
  (``questions/trace/graphs.py``) and does not record calls of graphs.
"""
