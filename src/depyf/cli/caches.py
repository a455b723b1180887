"""``depyf report --caches``: where the seconds of a start from caches go, and what is in a cache directory of vLLM.

A module of its own: ``depyf report`` writes pages otherwise, and this one writes nothing.
"""

from __future__ import annotations

from typing import List, Sequence

from depyf.base.visible import visible
from depyf.report.read.ranks import load_ranks
from depyf.report.read.vllm_cache import VllmCache, differing_factors, read_vllm_caches
from depyf.report.render.cache_words import start_lines

_MOST = 30


def print_caches(paths: Sequence[str]) -> int:
    """Print what is known of the starts in dumps and logs, and of cache directories; return the exit status."""
    dumps: List[str] = []
    caches: List[VllmCache] = []
    for path in paths:
        found = read_vllm_caches(path)
        caches += found
        dumps += [] if found else [path]
    if dumps:
        runs = load_ranks(dumps).runs
        for loaded in runs:
            if len(runs) > 1:
                print(visible(f"{loaded.name}:"))
            _print(start_lines(loaded.run))
    if caches:
        _print(_cache_lines(caches))
    return 0


def _print(lines: Sequence[str]) -> None:
    for line in lines:
        print(visible(line))


def _cache_lines(caches: Sequence[VllmCache]) -> List[str]:
    """Return what is in the directories, and where the factors of the newest two differ."""
    newest_last = sorted(caches, key=lambda each: each.written)
    lines = [line for each in newest_last for line in each.lines()]
    if len(newest_last) > 1:
        before, now = newest_last[-2:]
        lines.append(f"factors of {before.title} (older) and {now.title} (newer):")
        lines += [f"  {each}" for each in differing_factors(before, now)]
    if len(lines) > _MOST:
        lines = [*lines[: _MOST - 1], f"and {len(lines) - _MOST + 1} more lines"]
    return lines
