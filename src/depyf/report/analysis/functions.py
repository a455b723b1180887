"""The functions that Dynamo saw: the user's, and the resume functions that continue after a graph break."""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from depyf.diagnosis.guard_advice import GuardedFrame
from depyf.diagnosis.recompile_limits import LimitStanding
from depyf.report.analysis.source_facts import source_facts
from depyf.report.analysis.sources import Sources
from depyf.report.model.run import Function, Place
from depyf.torch_trace.resume_names import resumed

UNCOMPILED = "uncompiled "
"""Start of the name of a resume function's frame that transformed code calls and that has no transformed code."""

Key = Tuple[str, str, int]
"""Name of the code object, file, first line."""

_Known = Tuple[str, str, int, str]
"""The same with torch's number of the frame, which distinguishes resume functions of one line, or with the qualified
name of a function that shares its code with another one (decorated functions run the wrapper); empty for all others.
"""


def beside(qualified_name: str, name: str, other: str) -> str:
    """Return the qualified name of ``other``, which is defined where ``name``, called ``qualified_name``, is.

    Dynamo gives a resume function the class and function around the one that it resumes only where Python has
    qualified names in code objects (3.11); torch's trace never has them. So both are derived in the same way.
    """
    return qualified_name[: -len(name)] + other if qualified_name.endswith(name) else other


def frame_number(compile_id: str) -> str:
    """Return the frame id of a compilation, with the suffix (``#...``) of ids that were used before a reset as well."""
    return compile_id.partition("/")[0] + compile_id.partition("#")[2]


class Functions:
    """A table of functions that grows while they are looked up."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._numbers: Dict[_Known, int] = {}
        self._named: Dict[Tuple[str, str], List[Tuple[int, int]]] = {}
        """First lines and numbers of the functions of one name in one file, in order."""
        self._definitions: Dict[str, Mapping[Tuple[str, int], Tuple[str, int]]] = {}
        self._stars: Dict[str, Mapping[Tuple[str, int], Tuple[int, str, str]]] = {}
        self._qualified: Dict[Key, str] = {}
        self.full_code: Dict[int, str] = {}
        self.limits: Dict[int, Tuple[LimitStanding, ...]] = {}
        """Where functions stand with Dynamo's limits, as far as known."""
        self.of_compilations: Dict[str, str] = {}
        """The qualified name of the function of each compilation, by compile id, as far as known."""
        self.frames: Dict[str, str] = {}
        """Torch's numbers of frames without transformed code, by what stands for them in calls."""

    def index(self, name: str, path: str, first_line: int, qualified_name: str = "", frame: str = "") -> int:
        """Return the number of a function. Its qualified name is looked up in the source if it is not given. ``frame``
        is torch's number of the frame (or its compile id): two branches of one ``if`` continue in two resume functions,
        which have everything else in common. Without it, the first one is returned."""
        key = (name, self._sources.full(path), first_line)
        qualified_name = qualified_name or self.of_compilations.get(frame, "")
        if qualified_name and qualified_name != name:
            self._qualified.setdefault(key, qualified_name)
        # A function of the user's. Qualified names distinguish two that share code (the wrapper of a decorator).
        if resumed(name) is None:
            shares = bool(qualified_name) and qualified_name != self._qualified.get(key, qualified_name)
            return self._number((*key, qualified_name if shares else ""))
        # A resume function: both sides of ``if x.sum() > 0`` go on in functions of one name and one first line.
        frame = self.frames.get(frame) or frame_number(frame)
        if not frame:
            same = next((number for line, number in self._named.get(key[:2], ()) if line == first_line), None)
            if same is not None:
                return same
        return self._number((*key, frame))

    def _number(self, known: _Known) -> int:
        number = self._numbers.get(known)
        if number is None:
            number = self._numbers[known] = len(self._numbers)
            self._named.setdefault(known[:2], []).append((known[2], number))
        return number

    def guarded_frame(self, key: Key) -> GuardedFrame:
        """Return the known facts about a function whose guards are explained."""
        name, path, line = key
        what = resumed(name)
        found = [
            (start, stars)
            for (other, start), (last, *stars) in self._stars_of(self._sources.full(path)).items()
            if (other, start) == (name, line) or (what is not None and other == what[0] and start <= line <= last)
        ]
        # Of several around the line the innermost, which starts last.
        positional, keywords = max(found)[1] if found else ("", "")
        return GuardedFrame(what is not None, str(positional), str(keywords))

    def _stars_of(self, path: str) -> Mapping[Tuple[str, int], Tuple[int, str, str]]:
        if path not in self._stars:
            text = self._sources.text(path)
            self._stars[path] = {} if text is None else source_facts(text).stars
        return self._stars[path]

    def table(self) -> Tuple[Function, ...]:
        """Return all functions; one that is only known by its resume function is added."""
        for name, path, line, _ in list(self._numbers):
            self._resumed_by(name, path, line)
        keys = list(self._numbers)
        return tuple(self._function(number, keys) for number in range(len(keys)))

    def _function(self, number: int, keys: Sequence[_Known]) -> Function:
        name, path, first_line, other_name = known = keys[number]
        key = known[:3]
        resumes, at = None, None
        origin = self._resumed_by(name, path, first_line)
        if origin is not None:
            resumes, at = origin, (resumed(name) or ("", None))[1] or first_line
            begun = keys[origin][:3]
            qualified_name, last_line = beside(self._qualified_name(begun), begun[0], name), self._definition(begun)[1]
        else:
            qualified_name, last_line = other_name or self._qualified_name(key), self._definition(key)[1]
        return Function(
            name=name,
            qualified_name=qualified_name,
            source=self._sources.index(path),
            first_line=first_line,
            last_line=max(last_line, first_line),
            resumes=resumes,
            resumes_at=at,
            full_code=self.full_code.get(number),
            limits=self.limits.get(number, ()),
        )

    def _resumed_by(self, name: str, path: str, line: int) -> Optional[int]:
        """Return the number of the function that a resume function of this name continues; None for other functions."""
        what = resumed(name)
        if what is None:
            return None
        at = what[1] or line
        # A function that is in the table already; else one that the source has around that line.
        candidates = [known for known in self._named.get((what[0], path), ()) if known[0] <= at]
        if candidates:
            return max(candidates)[1]  # the innermost of those that begin before
        starts = [
            start for (other, start), (_, last) in self._of(path).items() if other == what[0] and start <= at <= last
        ]
        return self.index(what[0], path, max(starts, default=at))

    def _qualified_name(self, key: Key) -> str:
        """Return the qualified name of a function of the user's: the one that was given, or that in the source."""
        return self._qualified.get(key) or self._definition(key)[0]

    def _definition(self, key: Key) -> Tuple[str, int]:
        """Return the qualified name and the last line of a function, from its source."""
        name, path, first_line = key
        return self._of(path).get((name, first_line), (name, first_line))

    def holds(self, key: Key, place: Place) -> bool:
        """Return whether a location is in the function, or in the function that it resumes."""
        (name, path, first_line), (source, line) = key, place
        name = (resumed(name) or (name, None))[0]
        return self._sources.index(path) == source and any(
            other == name and start <= first_line <= last and start <= line <= last
            for (other, start), (_, last) in self._of(path).items()
        )

    def _of(self, path: str) -> Mapping[Tuple[str, int], Tuple[str, int]]:
        if path not in self._definitions:
            text = self._sources.text(path)
            self._definitions[path] = {} if text is None else source_facts(text).definitions
        return self._definitions[path]
