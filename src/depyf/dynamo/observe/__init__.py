"""Calls of compiled graphs, observed without changing what they compute.

``checked_backend`` puts an observer around each graph, ``shadow_entries`` compiles what is called for observers only
and forgets it afterwards, ``replay`` runs a call of a graph once more, node by node. May import everything of
``dynamo`` up to ``dump``. Start reading at ``observation.py``.
"""
