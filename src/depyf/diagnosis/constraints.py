"""PyTorch's ``ConstraintViolationError``: a dimension that was marked dynamic, and code that specialises it."""

from __future__ import annotations

import re
from typing import Optional, Tuple

from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass
from depyf.diagnosis.guard_sources import as_written

_CONSTANT = regex(
    r"(?:You marked (?P<marked>\S{1,400}) as dynamic but your code specialized it to be a constant"
    r"|Not all values of \w{1,80}\((?P<relaxed>.{1,400}?)\) are valid because .{1,400}? was inferred to be a constant) "
    r"\((?P<value>.{1,80}?)\)"
)
_RANGE = regex(
    r"Not all values of (?:\w{1,80}\((?P<relaxed>.{1,400}?)\)"
    r"|(?P<marked>\S{1,400}) = \S{1,400} in the specified range (?P<range>.{1,400}?)) "
    r"satisfy the generated guard (?P<guard>.{1,1000}?)\.?$",
    re.MULTILINE,
)
_ALL = regex(r"Constraints violated \((.{1,2000}?)\)!")
_FRAME = regex(r'^ *File "(?P<file>.+)", line (?P<line>\d{1,9}), in .*\n *(?P<code>.*)', re.MULTILINE)
_NEXT = "\n  - "
"""Begins what is said of the next dimension."""
_SIZE = regex(r"(.+)\.size\(\)\[(\d+)\]")


@dataclass(frozen=True)
class ViolatedConstraint:
    """What was marked, with the range of the mark if it has one, and what the program makes of it, in words; the user's
    line that does so; the other dimensions that are violated."""

    marked: str
    made: str
    location: Optional[Tuple[str, int]]
    code: str
    range: str = ""
    others: Tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.marked} is marked dynamic{f' for {self.range}' if self.range else ''}, and {self.made}"

    @property
    def advice(self) -> str:
        line = f" by `{self.code}`" if self.code else ""
        more = f" PyTorch names {' and '.join(self.others)}, too." if self.others else ""
        if self.range:
            return (
                f"{self.title}{line}.{more} Give each call a range in which the code does the same (min and max of "
                "torch._dynamo.mark_dynamic), or use torch._dynamo.maybe_mark_dynamic, or no mark."
            )
        return (
            f"{self.title}{line}.{more} Change that so that it holds for every size, mark all inputs that "
            "have to have the same size, or use torch._dynamo.maybe_mark_dynamic, or no mark."
        )


def violated_constraint(reason: str) -> Optional[ViolatedConstraint]:
    """Return what the text of the exception says first; None for other texts. Before 2.13 it has no user's line."""
    # - You marked L['x'].size()[0] as dynamic but your code specialized it to be a constant (7)
    # - Not all values of RelaxedUnspecConstraint(L['x'].size()[0]) are valid because L['x'].size()[0] was inferred to
    #   be a constant (7)
    # - Not all values of RelaxedUnspecConstraint(L['x'].size()[0]) satisfy the generated guard 4 <= L['x'].size()[0]
    # - Not all values of L['x'].size()[0] = L['x'].size()[0] in the specified range 4 <= L['x'].size()[0] <= 16 satisfy
    #   the generated guard 9 <= L['x'].size()[0] and L['x'].size()[0] <= 16
    constant, interval = _CONSTANT.search(reason), _RANGE.search(reason)
    if constant is not None:
        found = constant
        source, made = constant["marked"] or constant["relaxed"], f"is specialised to {constant['value']}"
    elif interval is not None:
        found = interval
        source = interval["marked"] or interval["relaxed"]
        made = f"the code is compiled only for {as_written(interval['guard'])}"
    else:
        return None
    all_of_them = _ALL.search(reason)
    others = [each for each in all_of_them[1].split(", ") if each != source] if all_of_them is not None else []
    of_mark = as_written(interval["range"]) if interval is not None and interval["range"] else ""
    own = reason[found.end() :].partition(_NEXT)[0]
    frames = list(_FRAME.finditer(own.partition("User stack:")[2]))
    location = (frames[-1]["file"], int(frames[-1]["line"])) if frames else None
    code = frames[-1]["code"].strip() if frames else ""
    return ViolatedConstraint(_in_words(source), made, location, code, of_mark, tuple(map(_in_words, others)))


def _in_words(source: str) -> str:
    size = _SIZE.fullmatch(source)
    return as_written(source) if size is None else f"dimension {size[2]} of {as_written(size[1])}"
