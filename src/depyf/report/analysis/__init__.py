"""From what torch reported to the model of the run.

``from_events`` puts it together; the other modules fill in one part each. May import ``model``, ``diagnosis`` and
``torch_trace``. Start reading at ``from_events.py``.
"""
