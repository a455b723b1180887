"""From torch's events to the model of the run. ``from_events`` combines the parts; the other modules make one part
each. May import ``model``, ``diagnosis`` and ``torch_trace``. Start reading at ``from_events.py``.
"""
