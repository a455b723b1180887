"""Match the parts of two runs: functions by name and file, their compilations by number, graphs by their text.

Compile ids and paths differ between runs of one program; these do not.
"""

from __future__ import annotations

import functools
from dataclasses import field, replace
from difflib import SequenceMatcher
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass
from depyf.report.analysis.functions import beside
from depyf.report.analysis.source_facts import source_facts
from depyf.report.diff.graph_text import plain_graph
from depyf.report.model.run import Artifact, Compilation, Function, Place, Run
from depyf.torch_trace.stages import Stage

TextOf = Callable[[Artifact], Optional[str]]
"""The text of an artifact; None when it can't be read."""

FunctionKey = Tuple[str, str]
"""Qualified name and file name. A resume function has the name that Dynamo gave it, with its line."""

NO_FUNCTION: FunctionKey = ("", "")

_RESUMED_AT = regex(r"_at_\d+")


@dataclass(frozen=True)
class ComparedRun:
    """One of the runs that are compared: its name for a reader (``rank 1``), the run, and how to read its artifacts."""

    name: str
    run: Run
    text_of: TextOf
    moved: Mapping[int, str] = field(default_factory=dict)
    """The file names that functions have in the other run, by index, where they differ."""

    @property
    def has_events(self) -> bool:
        """Whether the run has what only torch's trace has: graph breaks, recompilations, guards and times."""
        return self.run.origin != "files"

    @property
    def is_log(self) -> bool:
        """Whether the run was read from a log of torch's trace."""
        return self.run.origin == "torch_trace"

    def function(self, compilation: Compilation) -> FunctionKey:
        """Return the function that was compiled."""
        return self.function_at(compilation.function)

    def function_at(self, index: Optional[int]) -> FunctionKey:
        if index is None or not 0 <= index < len(self.run.functions):
            return NO_FUNCTION
        function = self.run.functions[index]
        file = self.moved.get(self.run.root(index)) or self.file_name(function.source)
        return (function.qualified_name or function.name, file)

    def code_of(self, index: int) -> Sequence[str]:
        """Return the lines of a function without indentation, none where its file could not be read."""
        function = self.run.functions[index]
        lines = (self.run.sources[function.source].text or "").splitlines()
        return [line.strip() for line in lines[function.first_line - 1 : function.last_line]]

    def root_of(self, index: Optional[int]) -> FunctionKey:
        """Return the user's function that a function is, or continues."""
        valid = index is not None and 0 <= index < len(self.run.functions)
        return self.function_at(self.run.root(index) if valid and index is not None else index)

    def root_of_id(self, compile_id: Optional[str]) -> FunctionKey:
        """Return the user's function that this compilation compiles, or continues."""
        index = next((c.function for c in self.run.compilations if c.compile_id == compile_id), None)
        return self.root_of(index)

    def is_resume(self, index: Optional[int]) -> bool:
        return index is not None and self.run.functions[index].resumes is not None

    def file_name(self, source: int) -> str:
        """Return the last part of the path of a file."""
        return self.run.sources[source].path.replace("\\", "/").rsplit("/", 1)[-1]

    def place(self, place: Optional[Place]) -> str:
        """Return ``file.py:12``, or an empty text."""
        return "" if place is None else f"{self.file_name(place[0])}:{place[1]}"

    def compilations(self) -> Dict[FunctionKey, List[Compilation]]:
        """Return the compilations of each function, in order."""
        found: Dict[FunctionKey, List[Compilation]] = {}
        for compilation in self.run.compilations:
            found.setdefault(self.function(compilation), []).append(compilation)
        return found

    def stages(self, compile_id: str) -> List[Artifact]:
        """Return the artifacts of one compilation that are graphs or generated code, from Dynamo down."""
        return sorted(self._stages.get(compile_id, ()), key=lambda artifact: artifact.order)

    @functools.cached_property
    def _stages(self) -> Dict[Optional[str], List[Artifact]]:
        found: Dict[Optional[str], List[Artifact]] = {}
        for artifact in self.run.artifacts:
            if artifact.kind in ("transformed", "graph", "wrapper", "kernels"):
                found.setdefault(artifact.compile_id, []).append(artifact)
        return found

    def in_a_graph(self, key: FunctionKey) -> bool:
        """Return whether lines of a function are in any graph: then it is compiled, on its own or in a caller."""
        # The lines of the function, by its qualified name in the sources of the run.
        spans = [
            (at, first, last)
            for at, source in enumerate(self.run.sources)
            if source.text is not None and self.file_name(at) == key[1]
            for (_, first), (qualified_name, last) in source_facts(source.text).definitions.items()
            if qualified_name == key[0]
        ]
        places = {place for each in self.run.artifacts for link in each.links for place in link.places} if spans else ()
        return any(at == place[0] and first <= place[1] <= last for place in places for at, first, last in spans)

    def captured_graph(self, compile_id: str) -> Optional[str]:
        """Return the text of the graph that Dynamo captured, without what differs from run to run."""
        for artifact in self.stages(compile_id):
            if artifact.kind == "graph" and artifact.stage == Stage.CAPTURED.value:
                text = self.text_of(artifact)
                return None if text is None else plain_graph(text)
        return None


def name_of(key: FunctionKey) -> str:
    """Return ``function (file.py)``, the name for display."""
    name, file = key
    return f"{name} ({file})" if file else name or "an unknown function"


def aligned(before: ComparedRun, after: ComparedRun) -> Tuple[ComparedRun, ComparedRun]:
    """Return both runs with equal qualified names for equal functions.

    Python knows the qualified name of code that runs. A log of torch's trace has none, and the source may be missing or
    was given to ``exec``: then the function of the other run with the same name and file is taken.
    """
    before, after = _renamed(before, after), _renamed(after, before)
    return replace(before, moved=_moved(before, after)), after


def _moved(before: ComparedRun, after: ComparedRun) -> Dict[int, str]:
    """Return the new file of each function that is in another file now, by index of the function.

    A function matches if it is the only one of its qualified name without a counterpart, on both sides.
    """
    then, now = _by_qualified_name(before), _by_qualified_name(after)
    # Functions without a counterpart: in a file that was renamed, or moved to another one.
    there = {key for keys in now.values() for _, key in keys}
    here = {key for keys in then.values() for _, key in keys}
    found: Dict[int, str] = {}
    for name, functions in then.items():
        lost = [(index, key) for index, key in functions if key not in there]
        new = [(index, key) for index, key in now.get(name, ()) if key not in here]
        if len(lost) == len(new) == 1 and _alike(before.code_of(lost[0][0]), after.code_of(new[0][0])):
            found[lost[0][0]] = new[0][1][1]
    return found


def _alike(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two texts may be one function before and after an edit: half of the lines are equal, or a
    text is not known."""
    return not one or not other or SequenceMatcher(None, one, other, autojunk=False).ratio() >= 0.5


def _by_qualified_name(side: ComparedRun) -> Dict[str, List[Tuple[int, FunctionKey]]]:
    """Return the user's functions by qualified name, each file once."""
    found: Dict[str, Dict[FunctionKey, int]] = {}
    for index, each in enumerate(side.run.functions):
        if each.resumes is None:
            key = side.function_at(index)
            found.setdefault(key[0], {}).setdefault(key, index)
    return {name: [(index, key) for key, index in keys.items()] for name, keys in found.items()}


def _renamed(side: ComparedRun, other: ComparedRun) -> ComparedRun:
    found: Dict[int, str] = {}
    # A log names ``forward`` where a dump names ``Model.forward``: only names without a class are completed.
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
            # Of several functions of that name in the file the one that starts on the same line.
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
    """Return the key of a resume function without its line, which moves when something above it is edited."""
    return (_RESUMED_AT.sub("", key[0]), key[1])
