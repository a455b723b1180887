"""What PyTorch's bisector has found: which part of the compiler makes the difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Bisected:
    """The result of ``torch._inductor.compiler_bisector``; prints as one line.

    ``backend`` is the first of PyTorch's backends whose results differ, ``subsystem`` the part of it without which they
    do not, ``number`` how often that part was applied before the application that makes the difference, and ``detail``
    what PyTorch says of this application: the name of a pass, a node. ``subsystem`` is None where no part of the
    backend makes the difference alone. ``runs`` is how often the code was compiled. ``message`` says why nothing was
    found.
    """

    backend: Optional[str] = None
    subsystem: Optional[str] = None
    number: Optional[int] = None
    detail: str = ""
    runs: int = 0
    message: str = ""

    def __str__(self) -> str:
        return f"PyTorch's bisector: {self._found()}{f' ({self.runs} runs)' if self.runs else ''}"

    def _found(self) -> str:
        if self.message:
            return self.message
        if self.backend is None:
            return "nothing found; with each of its backends the results are those of eager mode"
        if self.backend == "eager":
            return "eager; Dynamo is the only part of the compiler that is at work there"
        if self.subsystem is None:
            return f"{self.backend}; no part of it that can be disabled makes the difference alone"
        if self.detail == self.subsystem:
            return f"{self.backend}; with another value of the setting {self.subsystem} nothing differs"
        what = f": {self.detail}" if self.detail else ""
        return f"{self.backend}, {self.subsystem}, number {self.number}{what}"
