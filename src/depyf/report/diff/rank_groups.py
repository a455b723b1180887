"""Groups of many ranks: those that compiled the same, those that took longest, and how to name them shortly."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

from depyf.base import messages
from depyf.base.late_regex import regex
from depyf.report.diff.rank_summary import RankSummary
from depyf.report.model.headline import in_seconds

Difference = Dict[str, Any]
"""``title``, ``text``, ``ranks`` (what there is to say of each, by its name), ``place`` in the first one's sources."""

MOST_NAMED = 8
"""Up to so many ranks are named one by one; more ranks with equal results are one group."""

WORTH_SECONDS, SLOW = 1.0, 1.5
"""A difference of compile times that is worth mentioning, in seconds and as a factor; both must be reached."""

_RANK = regex(r"rank (\d+)")


def ranks_in_numbers(ranks: Sequence[RankSummary]) -> Difference:
    """Return the head of the differences: how many ranks compiled the same, with a line for each group of ranks."""
    groups: Dict[Tuple[object, ...], List[RankSummary]] = {}
    for rank in ranks:
        groups.setdefault(rank.compiled(), []).append(rank)
    by_size = sorted(groups.values(), key=len, reverse=True)
    others = len(ranks) - len(by_size[0])
    same = "compiled the same" if not others else f"{others:,} compiled something else than most"
    texts = {
        listed([rank.name for rank in group]): f"{group[0].headline}\n{seconds_in_words(group)}"
        for group in by_size[:MOST_NAMED]
    }
    if len(by_size) > MOST_NAMED:
        rest = [rank.name for group in by_size[MOST_NAMED:] for rank in group]
        texts[listed(rest)] = f"{len(by_size) - MOST_NAMED:,} other groups"
    return {"title": f"{len(ranks):,} ranks, {same}", "text": "", "ranks": texts, "place": None}


def odd_ranks(ranks: Sequence[RankSummary]) -> List[int]:
    """Return which ranks are worth a full view: the first, one of each group that compiled something else, and those
    that took longest; at most ``MOST_NAMED``.
    """
    first: Dict[Tuple[object, ...], int] = {}
    sizes: Dict[Tuple[object, ...], int] = {}
    for index, rank in enumerate(ranks):
        key = rank.compiled()
        first.setdefault(key, index)
        sizes[key] = sizes.get(key, 0) + 1
    by_size = [first[key] for key in sorted(sizes, key=lambda each: -sizes[each])]
    slow = slow_ranks(ranks)
    # The first rank, one of the largest group, the two slowest, one of each other group, and more of the slow ones.
    kept = [0, *by_size[:1], *slow[:2], *by_size[1:], *slow[2:]] if ranks else []
    return sorted(list(dict.fromkeys(kept))[:MOST_NAMED])


def listed(names: Sequence[str]) -> str:
    """Return ``rank 1``, ``rank 0, rank 1``; of many ``ranks 0 to 16, 18 and 20 (19 ranks)``."""
    found = [_RANK.fullmatch(name) for name in names]
    numbers = sorted(int(each.group(1)) for each in found if each is not None)
    if len(names) <= 2 or len(numbers) < len(names):
        return messages.listed(names, MOST_NAMED)
    parts: List[List[int]] = []
    for number in numbers:
        # ``0 1 2 5`` becomes ``[[0, 2], [5]]``.
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    words = [" to ".join(map(str, part)) for part in parts[:MOST_NAMED]]
    end = f" and {sum(part[-1] - part[0] + 1 for part in parts[MOST_NAMED:]):,} more" if len(parts) > MOST_NAMED else ""
    return f"ranks {', '.join(words)}{end} ({len(names):,} ranks)"


def slow_ranks(ranks: Sequence[RankSummary]) -> List[int]:
    """Return the ranks that compiled clearly longer than most, the slowest first."""
    seconds = [rank.seconds for rank in ranks]
    if not seconds:
        return []
    usual = median(seconds)
    slow = [at for at, each in enumerate(seconds) if each - usual >= WORTH_SECONDS and each >= SLOW * usual]
    return sorted(slow, key=lambda at: -seconds[at])


def median(seconds: Sequence[float]) -> float:
    """Return the median, the lower one of two in the middle."""
    return sorted(seconds)[(len(seconds) - 1) // 2]


def seconds_in_words(ranks: Sequence[RankSummary]) -> str:
    """Return the compile times of these ranks."""
    seconds = sorted(rank.seconds for rank in ranks)
    if len(seconds) == 1:
        return f"compile time {in_seconds(seconds[0])}"
    return f"compile time {seconds[0]:.2f} to {seconds[-1]:.2f} s, median {median(seconds):.2f} s"
