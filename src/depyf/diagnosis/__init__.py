"""Explanations of what happened, and what to do about it: one piece of advice for each cause.

``guard`` is a guard as a typed value, which ``guard_text`` reads from what PyTorch prints. ``guard_explanations``
explains one that failed, ``guard_advice`` and ``break_advice`` say what avoids them. The questions and the page use the
same ones. May import ``torch_trace`` and the decompiler. Start reading at ``guard.py``.
"""
