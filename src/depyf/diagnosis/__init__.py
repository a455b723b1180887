"""What happened, in words, and what to do about it: one piece of advice for one cause.

``guard_explanations`` and ``state_explanations`` explain guards that failed, ``guard_advice`` and ``break_advice`` say what avoids
them. The questions and the page use the same ones. Start reading at ``guard_explanations.py``.
"""
