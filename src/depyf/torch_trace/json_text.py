"""JSON out of logs and dumps, which a stranger may have written."""

from __future__ import annotations

import json
from typing import Any

from depyf.asynchronous import synchronous


def parsed(text: str) -> Any:
    """Return what a text of JSON says. Raises ``ValueError``, also for one that is nested too deeply."""
    try:
        return json.loads(text)
    except synchronous(RecursionError):
        raise ValueError("nested too deeply") from None
