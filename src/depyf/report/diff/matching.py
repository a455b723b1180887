"""Match the parts of two runs: functions by name and file, their compilations by number, graphs by their text.

Compile ids and paths differ between runs of one program; these do not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Dict, List, Mapping, Optional, Tuple

from depyf.lazy_pattern import re_compile
from depyf.quick_dataclass import dataclass
from depyf.report.analysis.functions import beside
from depyf.report.diff.graph_text import plain_graph
from depyf.report.model.run import Artifact, Compilation, Function, Place, Run
from depyf.torch_trace.stages import Stage

TextOf = Callable[[Artifact], Optional[str]]
"""The text of an artifact; None when it can't be read."""

FunctionKey = Tuple[str, str]
"""Qualified name and file name. A resume function has the name that Dynamo gave it, with its line."""

NO_FUNCTION: FunctionKey = ("", "")

_RESUMED_AT = re_compile(r"_at_\d+")


@dataclass(frozen=True)
class Side:
    """One of the runs that are compared: its name for a reader (``rank 1``), the run, and how to read its artifacts."""

    name: str
    run: Run
    text_of: TextOf

    @property
    def has_events(self) -> bool:
        """Whether the run says what only torch's trace does: graph breaks, recompilations, guards and times."""
        return self.run.origin != "files"

    @property
    def is_log(self) -> bool:
        """Whether the run was read from a log of torch's trace."""
        return self.run.origin == "torch_trace"

    def function(self, compilation: Compilation) -> FunctionKey:
        """The function that was compiled."""
        return self.function_at(compilation.function)

    def function_at(self, index: Optional[int]) -> FunctionKey:
        if index is None or not 0 <= index < len(self.run.functions):
            return NO_FUNCTION
        function = self.run.functions[index]
        return (function.qualified_name or function.name, self.file_name(function.source))

    def function_of_id(self, compile_id: Optional[str]) -> FunctionKey:
        """The function whose compilation has this id."""
        for compilation in self.run.compilations:
            if compilation.compile_id == compile_id:
                return self.function(compilation)
        return NO_FUNCTION

    def is_resume(self, index: Optional[int]) -> bool:
        return index is not None and self.run.functions[index].resumes is not None

    def file_name(self, source: int) -> str:
        """The last part of the path of a file."""
        return self.run.sources[source].path.replace("\\", "/").rsplit("/", 1)[-1]

    def place(self, place: Optional[Place]) -> str:
        """``file.py:12``, or an empty text."""
        return "" if place is None else f"{self.file_name(place[0])}:{place[1]}"

    def compilations(self) -> Dict[FunctionKey, List[Compilation]]:
        """What was compiled of each function, in order."""
        found: Dict[FunctionKey, List[Compilation]] = {}
        for compilation in self.run.compilations:
            found.setdefault(self.function(compilation), []).append(compilation)
        return found

    def stages(self, compile_id: str) -> List[Artifact]:
        """The artifacts of one compilation that are graphs or generated code, from Dynamo down."""
        found = [
            artifact
            for artifact in self.run.artifacts
            if artifact.compile_id == compile_id and artifact.kind in ("transformed", "graph", "wrapper", "kernels")
        ]
        return sorted(found, key=lambda artifact: artifact.order)

    def captured_graph(self, compile_id: str) -> Optional[str]:
        """The text of the graph that Dynamo captured, without what differs from run to run."""
        for artifact in self.stages(compile_id):
            if artifact.kind == "graph" and artifact.stage == Stage.CAPTURED.value:
                text = self.text_of(artifact)
                return None if text is None else plain_graph(text)
        return None


def name_of(key: FunctionKey) -> str:
    """``function (file.py)``, the name as a reader knows it."""
    name, file = key
    return f"{name} ({file})" if file else name or "an unknown function"


def aligned(before: Side, after: Side) -> Tuple[Side, Side]:
    """Return both sides with the same qualified names for the same functions.

    Python says the qualified name of what runs. A log of torch's trace has none, and it can't be looked up where the
    source is not here or was given to ``exec``: then the function of the other side with its name and file is meant.
    """
    return _renamed(before, after), _renamed(after, before)


def _renamed(side: Side, other: Side) -> Side:
    found: Dict[int, str] = {}
    there = [index for index, each in enumerate(other.run.functions) if each.resumes is None]
    known = {other.function_at(index) for index in there}
    for index, each in enumerate(side.run.functions):
        if each.resumes is None and each.qualified_name == each.name and side.function_at(index) not in known:
            file = side.file_name(each.source)
            alike = [
                one
                for one in (other.run.functions[number] for number in there)
                if one.name == each.name and other.file_name(one.source) == file
            ]
            names = {one.qualified_name for one in alike if one.first_line == each.first_line}
            names = names or {one.qualified_name for one in alike}
            if len(names) == 1:
                found[index] = names.pop()
    if not found:
        return side
    functions = tuple(_with_name(side.run, index, each, found) for index, each in enumerate(side.run.functions))
    return replace(side, run=replace(side.run, functions=functions))


def _with_name(run: Run, index: int, function: Function, names: Mapping[int, str]) -> Function:
    root = run.root(index)
    if root not in names:
        return function
    return replace(function, qualified_name=beside(names[root], run.functions[root].name, function.name))


def without_line(key: FunctionKey) -> FunctionKey:
    """The key of a resume function without its line, which moves when something above it is edited."""
    return (_RESUMED_AT.sub("", key[0]), key[1])
