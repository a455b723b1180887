"""Is compiling worth it: medians of calls of both kinds, what their spread allows to say, and three sentences.

Calls are timed in pairs, one compiled and one eager directly after each other, as a machine is faster and slower over
time. The decision goes by the ratios of the pairs: an interval for their median that holds with about 95 %, by order
statistics (no distribution is assumed). If 1 is in the interval, no difference is claimed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import Final, List, Literal, Optional, Sequence, Tuple

from depyf.base.messages import duration
from depyf.base.plain_data import Answer

Decision = Literal["faster", "slower", "no difference"]
FASTER: Final = "faster"
SLOWER: Final = "slower"
NO_DIFFERENCE: Final = "no difference"

_WIDE = 0.2
"""An interval of a break-even that is wider than this share of it is said."""

FEWEST_PAIRS = 6
"""With fewer pairs no interval holds with 95 %."""


@dataclass(frozen=True)
class Spread:
    """Times of single calls in seconds: their median and quartiles."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{duration(self.median)} ({duration(self.low)} to {duration(self.high)})"


@dataclass(frozen=True)
class Beside:
    """Calls that ran without a profiler, compiled and eager in turns.

    ``ratio`` is eager time by compiled time, the median of all pairs; ``ratio_low`` to ``ratio_high`` is an interval
    for that median. ``saved`` are the seconds that a call saves, the median of all pairs, negative where compiled calls
    are slower. ``overhead`` is the time of a compiled call that checks guards and calls graphs. ``break_even`` is
    the number of calls after which the compile time is paid back, None where compiled calls are not faster.
    ``break_even_low`` to ``break_even_high`` is the interval of ``break_even`` that follows from the interval of
    ``saved``; the compile time is one measurement, without an interval.
    """

    compiled: Spread
    eager: Spread
    ratio: float
    ratio_low: float
    ratio_high: float
    pairs: int
    decision: Decision
    compile_seconds: float
    overhead: float
    break_even: Optional[int]
    saved: float
    break_even_low: Optional[int] = None
    break_even_high: Optional[int] = None

    @property
    def paid_after(self) -> str:
        """The number of calls that pay the compile time back, with its interval where that is wide."""
        if self.break_even is None:
            return "no number of calls is known to pay"
        low, high = self.break_even_low, self.break_even_high
        if low is None or high is None or high - low <= _WIDE * self.break_even:
            return f"{self.break_even} calls pay"
        return f"{self.break_even} calls pay ({low} to {high})"


@dataclass(frozen=True)
class Worth(Answer, kind="worth"):
    """Whether compiling pays; prints as three sentences. ``loss`` names the line that has lost most, and is empty where
    no line is slower."""

    beside: Beside
    loss: str

    def __str__(self) -> str:
        return "\n".join(sentences(self.beside, self.loss))


def beside(compiled: Sequence[float], eager: Sequence[float], *, compile_seconds: float, overhead: float) -> Beside:
    """Compare the times of single calls, of which those at the same position form a pair."""
    ratios = sorted(e / c for c, e in zip(compiled, eager) if c > 0)
    low, high = interval(ratios)
    savings = sorted(e - c for c, e in zip(compiled, eager))
    saved = median(savings)
    least, most = interval(savings)
    decision: Decision = FASTER if low > 1 else SLOWER if high < 1 else NO_DIFFERENCE
    # Where 1 is below the interval of the ratios, 0 is below the interval of the differences.
    pays = decision == FASTER and least > 0
    return Beside(
        compiled=_spread(compiled),
        eager=_spread(eager),
        ratio=median(ratios) if ratios else 1.0,
        ratio_low=low,
        ratio_high=high,
        pairs=len(ratios),
        decision=decision,
        compile_seconds=compile_seconds,
        overhead=overhead,
        break_even=math.ceil(compile_seconds / saved) if pays else None,
        saved=saved,
        break_even_low=math.ceil(compile_seconds / most) if pays else None,
        break_even_high=math.ceil(compile_seconds / least) if pays else None,
    )


def interval(ordered: Sequence[float]) -> Tuple[float, float]:
    """Return the interval between two of the values that contains the median with at least 95 %."""
    count = len(ordered)
    if count < FEWEST_PAIRS:
        return 0.0, math.inf
    # The median is below the k-th smallest value if fewer than k of ``count`` values are below the median: a binomial
    # distribution with p = 1/2. The largest k with at most 2.5 % on each side is taken.
    below, rank = 0.0, 0
    for at in range(count):
        below += math.comb(count, at) * 0.5**count
        if below > 0.025:
            break
        rank = at
    return ordered[rank], ordered[count - 1 - rank]


def _spread(times: Sequence[float]) -> Spread:
    ordered = sorted(times)
    last = len(ordered) - 1
    return Spread(median(ordered), ordered[round(last * 0.25)], ordered[round(last * 0.75)])


def sentences(beside: Beside, loss: str) -> List[str]:
    """Return three sentences: the decision with its numbers, when the compile time is paid back, and what costs.
    ``loss`` names the line that has lost most, empty where no line is slower."""
    one = f"A compiled call takes {beside.compiled}, an eager call {beside.eager}"
    if beside.decision == NO_DIFFERENCE:
        first = f"No difference beyond the noise: a{one[1:]}."
    else:
        factor = beside.ratio if beside.decision == FASTER else 1 / beside.ratio
        first = f"Compiling makes it {beside.decision}, {factor:.2f} times: a{one[1:]}."
    second = f"Compiling took {duration(beside.compile_seconds) or '0 s'}, which {beside.paid_after} back."
    third = f"Guards and the calls of graphs take {duration(beside.overhead) or '0 s'} of a compiled call"
    return [first, second, f"{third}, and {loss or 'no line is slower'}."]
