"""All guard rules that give advice, with the text of each: every one needs a row in ``guard_rows.py``.

A module of its own: the rows, the test and the printed table name rules in the same way.
"""

from __future__ import annotations

import re
from typing import Dict, Tuple, Union

from depyf.diagnosis import guard_advice
from depyf.diagnosis.guard_advice import GuardCause, ValueOrigin

Rule = Union[GuardCause, Tuple[GuardCause, ValueOrigin], str]
"""The cause of a guard, the cause for values of one origin, or the name of an advice that neither selects."""


def guard_rules() -> Dict[Rule, str]:
    """Return the text of each advice for guards, with its placeholders in braces."""
    rules: Dict[Rule, str] = dict(guard_advice._ADVICE)
    for origin, advice in guard_advice._BY_ORIGIN.items():
        rules.update({(cause, origin): text for cause, text in advice.items()})
    rules.update({f"state: {name or 'any'}": text for name, text in guard_advice.STATE_ADVICE.items()})
    rules["sizes 0 and 1"] = guard_advice.SMALL_SIZE_ADVICE
    rules["state of an optimizer"] = guard_advice.OPTIMIZER_ADVICE
    rules["keyword arguments"] = guard_advice._KEYWORDS
    rules["made anew at a graph break"] = guard_advice._MADE_ANEW
    return rules


def is_said(advice: str, text: str) -> bool:
    """Return whether an advice, whose placeholders in braces have values there, is in a text."""
    parts = map(re.escape, re.split(r"\{\w+\}", advice.rstrip(".")))
    return re.search(".{0,200}?".join(parts), text, re.IGNORECASE | re.DOTALL) is not None
