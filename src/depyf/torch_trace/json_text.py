"""Parse JSON from logs and dumps, which may be untrusted."""

from __future__ import annotations

import json
from typing import Any

from depyf.base.asynchronous import synchronous


def parsed(text: str) -> Any:
    """Return the value of a JSON text. Raises ``ValueError``, also for one that is nested too deeply."""
    try:
        return json.loads(text)
    except synchronous(RecursionError):
        raise ValueError("nested too deeply") from None
