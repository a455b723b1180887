"""Parse PyTorch's logs of graph breaks and recompilations: the output of ``TORCH_LOGS=graph_breaks,recompiles``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Tuple

_BREAK = re.compile(r"\[([\d/]+)(?:_\d+)?\] \[__graph_breaks\] Graph break in user code at (.*):(\d+)$")
_RECOMPILE = re.compile(r"\[([\d/]+)(?:_\d+)?\] \[__recompiles\] Recompiling function (\S+) in (.*):(\d+)$")
_REASON = re.compile(r"\[([\d/]+)(?:_\d+)?\] \[__recompiles\]     - (\d+/\d+): (.*)$")


@dataclass(frozen=True)
class Words:
    """``breaks`` are compile id, file and line; ``recompiles`` compile id, function, file and line of its ``def``;
    ``reasons`` compile id, the cache entry whose guard failed, and the beginning of that guard's text."""

    breaks: List[Tuple[str, str, int]]
    recompiles: List[Tuple[str, str, str, int]]
    reasons: List[Tuple[str, str, str]]


def words_in(log: str) -> Words:
    """What the log says."""
    words = Words([], [], [])
    for line in log.splitlines():
        found = _BREAK.search(line)
        if found is not None:
            words.breaks.append((found.group(1), found.group(2), int(found.group(3))))
        found = _RECOMPILE.search(line)
        if found is not None:
            words.recompiles.append((found.group(1), found.group(2), found.group(3), int(found.group(4))))
        found = _REASON.search(line)
        if found is not None:
            words.reasons.append((found.group(1), found.group(2), found.group(3).partition("  # ")[0].strip()))
    return words
