"""The answer of ``extract``: where the script of a graph is, and what happened when it was run."""

from __future__ import annotations

import html
import shlex
from dataclasses import dataclass, field
from typing import Iterator, Optional, Tuple

from depyf.answers.bisected import Bisected
from depyf.answers.consoles import in_console
from depyf.answers.watch import counted
from depyf.base.late_regex import regex
from depyf.base.plain_data import Answer

_PYTHON = "python"

_TRACING = regex(r"(?m)^torch\._dynamo\.exc\.(?:InternalTorchDynamoError|Unsupported)\b")
"""The error where Dynamo can't trace a graph that it has written itself; the script has run it eagerly before."""


@dataclass(frozen=True)
class Extracted(Answer, kind="extract"):
    """A script that was written; prints as text.

    ``graph`` is what was extracted, ``path`` the script, ``values`` the file of saved values beside it (None where they
    are made up). ``runs`` says whether the script ended well when it was run in a process of its own: it runs, and its
    compiled results are the eager ones (None: it was not tried); ``output`` is what it printed. ``notes`` say what is
    not as it was in the program. ``bisected`` is what PyTorch's bisector says of a script that does not end well, if it
    was asked.
    """

    graph: str
    path: str
    values: Optional[str] = None
    runs: Optional[bool] = None
    output: str = field(default="", repr=False)
    notes: Tuple[str, ...] = ()
    bisected: Optional[Bisected] = None

    @property
    def bisect_command(self) -> str:
        """The command with which PyTorch names the part of the compiler that makes the script fail. The bisector
        deletes the whole cache directory at its end: hence one of its own."""
        bisector = f"{_PYTHON} -m torch._inductor.compiler_bisector run"
        return f"TORCHINDUCTOR_CACHE_DIR=$(mktemp -d) {bisector} {_PYTHON} {shlex.quote(self.path)}"

    @property
    def minify_command(self) -> str:
        """The command with which PyTorch makes a smaller graph that still fails to compile."""
        return f"TORCHDYNAMO_REPRO_AFTER=aot TORCHDYNAMO_REPRO_LEVEL=2 {_PYTHON} {shlex.quote(self.path)}"

    def __fspath__(self) -> str:
        return self.path

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    _repr_pretty_ = in_console

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def _lines(answer: Extracted) -> Iterator[str]:
    yield f"{answer.graph}: {answer.path}"
    if answer.values is not None:
        yield f"  the values of its inputs: {answer.values}"
    if answer.runs is None:
        yield "  not run yet"
    else:
        if answer.runs:
            same = counted(sum(line.startswith("    same") for line in answer.output.splitlines()), "value")
            yield f"  checked in a process of its own: it runs, and gives the same compiled as eagerly ({same})"
        else:
            yield "  checked in a process of its own: it does NOT run correctly by itself"
            yield from (f"    {line}" for line in answer.output.splitlines()[-12:])
            yield from _next_steps(answer)
    for note in answer.notes:
        yield f"  note: {note}"


def _next_steps(answer: Extracted) -> Iterator[str]:
    """Yield what PyTorch has for a script that fails."""
    if _TRACING.search(answer.output) is not None:
        yield "  Dynamo of this PyTorch can't trace its own graph again, so no backend received the graph"
        yield f"  run it eagerly: {_PYTHON} {shlex.quote(answer.path)} --backend none"
        return
    yield f"  {answer.bisected or f'to find the part of the compiler at fault: {answer.bisect_command}'}"
    yield f"  to reduce the graph, if it fails to compile: {answer.minify_command}"
