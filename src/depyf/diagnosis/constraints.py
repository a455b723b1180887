"""PyTorch's ``ConstraintViolationError``: a dimension that was marked dynamic, and code that specialises it."""

from __future__ import annotations

import re
from typing import Optional, Tuple

from depyf.diagnosis.guard_sources import as_written
from depyf.lazy_pattern import re_compile
from depyf.quick_dataclass import dataclass

_CONSTANT = re_compile(
    r"(?:You marked (?P<marked>\S{1,400}) as dynamic but your code specialized it to be a constant"
    r"|Not all values of \w{1,80}\((?P<relaxed>.{1,400}?)\) are valid because .{1,400}? was inferred to be a constant) "
    r"\((?P<value>.{1,80}?)\)"
)
_RANGE = re_compile(
    r"Not all values of \w{1,80}\((?P<relaxed>.{1,400}?)\) satisfy the generated guard (?P<guard>.{1,1000}?)\.?$",
    re.MULTILINE,
)
_FRAME = re_compile(r'^ *File "(?P<file>.+)", line (?P<line>\d{1,9}), in .*\n *(?P<code>.*)', re.MULTILINE)
_NEXT = "\n  - "
"""Begins what is said of the next dimension."""
_SIZE = re_compile(r"(.+)\.size\(\)\[(\d+)\]")


@dataclass(frozen=True)
class ViolatedConstraint:
    """What was marked, and what the program makes of it, in words; the user's line that does so."""

    marked: str
    made: str
    place: Optional[Tuple[str, int]]
    code: str

    @property
    def title(self) -> str:
        return f"{self.marked} is marked dynamic, and {self.made}"

    @property
    def advice(self) -> str:
        line = f" by `{self.code}`" if self.code else ""
        return (
            f"{self.title}{line}. Change that so that it holds for every size, or use "
            "torch._dynamo.maybe_mark_dynamic, or no mark."
        )


def violated_constraint(reason: str) -> Optional[ViolatedConstraint]:
    """Return what the text of the exception says first; None for other texts. Before 2.13 it has no user's line."""
    constant, interval = _CONSTANT.search(reason), _RANGE.search(reason)
    if constant is not None:
        found = constant
        source, made = constant["marked"] or constant["relaxed"], f"is specialised to {constant['value']}"
    elif interval is not None:
        found = interval
        source, made = interval["relaxed"], f"holds only for {as_written(interval['guard'])}"
    else:
        return None
    size = _SIZE.fullmatch(source)
    marked = as_written(source) if size is None else f"dimension {size[2]} of {as_written(size[1])}"
    own = reason[found.end() :].partition(_NEXT)[0]
    frames = list(_FRAME.finditer(own.partition("User stack:")[2]))
    place = (frames[-1]["file"], int(frames[-1]["line"])) if frames else None
    return ViolatedConstraint(marked, made, place, frames[-1]["code"].strip() if frames else "")
