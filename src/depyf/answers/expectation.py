"""What ``expect`` has counted in a block, compared with what was expected, and the text of the error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Union

from depyf.answers.watch import BREAK, FALLBACK, RECOMPILE, WatchEvent, counted, shortened
from depyf.base.plain_data import Answer, as_data
from depyf.base.source_lines import source_line

__tracebackhide__ = True  # pytest shows the lines of the test alone

Number = Union[int, range]
"""What may be expected: exactly so many, or one of a range."""

WORDS: Mapping[str, str] = {"breaks": BREAK, "recompiles": RECOMPILE, "graphs": "graph", "fallbacks": FALLBACK}
"""What is counted, by the name of its number."""
NAMES = tuple(WORDS)

_NOTHING = (
    "Nothing was compiled in the block. What was compiled before it is not counted: call torch._dynamo.reset() first. "
    "TORCHDYNAMO_DISABLE and torch.compiler.set_stance may keep Dynamo from compiling"
)


class ExpectationError(AssertionError):
    """What was compiled in a block of ``depyf.expect`` is not what was expected.

    ``counts`` has the numbers by name (``breaks``, ``recompiles``, ``graphs``, ``fallbacks``), ``expected`` those that
    were given, and ``happened`` every graph break, recompilation and fallback of the block as a
    ``depyf.answers.watch.WatchEvent``, with its stack and its advice.
    """

    __module__ = "depyf"
    """Where users find it, and what tracebacks call it."""

    def __init__(
        self,
        message: str,
        counts: Optional[Mapping[str, int]] = None,
        expected: Optional[Mapping[str, Number]] = None,
        happened: Sequence[WatchEvent] = (),
    ) -> None:
        super().__init__(message)
        self.counts = dict(counts or {})
        self.expected = dict(expected or {})
        self.happened = list(happened)

    def to_dict(self) -> Dict[str, object]:
        """Return all of it as plain data, for JSON; docs/json.md has what the names are."""
        named = {"counts": self.counts, "expected": self.expected, "happened": self.happened}
        return {name: as_data(value) for name, value in named.items()}


@dataclass(frozen=True)
class Counted(Answer, kind="expect"):
    """What happened while something ran: a block of ``expect``, or a test under ``pytest --depyf``."""

    happened: Sequence[WatchEvent]
    graphs: int

    _properties = ("counts",)

    def relevant(self, name: str) -> List[WatchEvent]:
        """Return what counts under this name; a graph break once for each compilation that came to it."""
        kind = WORDS[name]
        return [each for each in self.happened if each.kind == kind]

    @property
    def counts(self) -> Mapping[str, int]:
        """The numbers as docs/glossary.md defines them, by name."""
        found = {name: len(self.relevant(name)) for name in NAMES}
        found["breaks"] = len({each.cause for each in self.relevant("breaks")})
        return {**found, "graphs": self.graphs}

    def check(self, expected: Mapping[str, Number]) -> None:
        """Raise ``ExpectationError`` where a number is not the expected one."""
        counts = self.counts
        wrong = [name for name, number in expected.items() if not _fits(counts[name], number)]
        if wrong:
            raise ExpectationError("\n".join(self._explained(wrong, expected)), counts, expected, self.happened)

    def _explained(self, wrong: Sequence[str], expected: Mapping[str, Number]) -> Iterator[str]:
        counts = self.counts
        yield "; ".join(f"{counted(counts[name], WORDS[name])}, expected {_shown(expected[name])}" for name in wrong)
        shown = list(wrong)
        if "graphs" in wrong:  # these make more graphs, or fewer
            shown += [name for name in ("breaks", "recompiles", "fallbacks") if name not in wrong]
        happened = [each for name in shown for each in self.relevant(name)]
        # A break that several compilations met is one.
        happened = list({each.cause if each.kind == BREAK else id(each): each for each in reversed(happened)}.values())
        happened.reverse()
        yield from described(happened)
        if not self.graphs and not happened:
            yield _NOTHING


def described(happened: Sequence[WatchEvent]) -> Iterator[str]:
    """Yield lines about each event: its kind, the stack with the lines of the source, how to avoid it."""
    for each in happened:
        yield ""
        yield str(each)
        for path, line, function in each.stack:
            yield f'  File "{shortened(path)}", line {line}, in {function}'
            text = source_line(path, line)
            if text:
                yield f"    {text}"
        if each.advice:
            yield f"  What avoids it: {each.advice}"


def _fits(count: int, number: Number) -> bool:
    return count in number if isinstance(number, range) else count == number


def _shown(number: Number) -> str:
    if isinstance(number, range) and number.step == 1:
        return f"{number.start} to {number.stop - 1}"
    return str(number)
