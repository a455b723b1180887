"""What ``depyf mcp`` offers to an agent: questions to a dump, each one a function with plain data as its result.

A function here becomes a tool: its name, its docstring and its annotations are what an agent sees. ``DumpTools`` reads
files below one directory and runs nothing; ``ProgramTools`` runs programs, and is there only if the user asks for it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from depyf.answers.watch import counted
from depyf.base.asynchronous import suppressed, synchronous
from depyf.base.plain_data import as_data, as_fields
from depyf.report.diff.comparison import compare
from depyf.report.diff.comparison_output import comparison_lines
from depyf.report.model.counts import status_in_words
from depyf.report.model.places import innermost_place
from depyf.report.model.run import Artifact, Compilation, Place, Run
from depyf.report.read.ranks import load_ranks
from depyf.report.read.reading import Loaded, NothingToRead
from depyf.report.render.memory_words import memory_of, with_memory
from depyf.report.render.reported import reported
from depyf.running.program import own_command

Data = Dict[str, object]
Tool = Callable[..., Data]

_MOST_LINES = 400
"""So many lines of a text are given at once."""
_MOST = 40
"""So many places in artifacts, or artifacts, are given at once."""
_MOST_KEPT = 4
"""So many dumps stay in memory."""
_SECONDS = 1800.0


class ToolError(Exception):
    """Raised when a question can't be answered; the message says why, and what can be asked."""


class DumpTools:
    """Questions to dumps below ``root``, a directory. What was read is kept until the files change."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        self._known: Dict[str, Tuple[object, List[Loaded]]] = {}

    def overview(self, dump: str, rank: str = "") -> Data:
        """Say what torch.compile did in a run: begin with this.

        dump: a dump directory of depyf (made by `depyf run` or DEPYF_DUMP), or a TORCH_TRACE log. rank: which process,
        by its name in `ranks`, if the dump has several; the first one without it. The answer has a headline, counts,
        the findings that are worth acting on (each with its file, line and advice), and the compiled functions.
        """
        loaded, others = self._loaded(dump, rank)
        run = loaded.run
        functions = list(_functions(run))
        sources = [each.path for each in run.sources if not each.library] or [each.path for each in run.sources]
        found = as_fields(reported(run, loaded.name, loaded.directory))
        return {**found, "ranks": others, "functions": functions, "sources": sources}

    def why(self, dump: str, compile_id: str, rank: str = "") -> Data:
        """Say why a compilation came about: what it compiled, which guards of which cache entries had failed, with the
        value then and now, the graph breaks in it, and what avoids them. compile_id: such as 0/1, from `overview`.
        """
        run = self._loaded(dump, rank)[0].run
        one = _find_compilation(run, compile_id)
        failed = [_with_line(run, each) for each in run.recompiles if each.compile_id == compile_id]
        breaks = [_with_line(run, each) for each in run.breaks if each.compile_id == compile_id]
        name = "" if one.function is None else run.functions[one.function].qualified_name
        return {
            "function": name,
            "status": status_in_words(one),
            "failure": one.failure,
            "seconds": one.seconds,
            "runs": one.runs,
            "recompiled_because": failed,
            "graph_breaks": breaks,
            "guards": len(one.guards),
            "artifacts": [each.id for each in run.artifacts if each.compile_id == compile_id],
        }

    def line(self, dump: str, file: str, line: int, rank: str = "") -> Data:
        """Say what became of a source line: the lines of graphs, of generated code and of kernels that come from it.

        file: the end of the path is enough (model.py). The answer has the parts of each artifact, in the order of the
        stages, with their text; `artifact` reads around them.
        """
        loaded = self._loaded(dump, rank)[0]
        run = loaded.run
        source = _source(run, file)
        parts: List[Data] = []
        for each in sorted(run.artifacts, key=lambda one: (one.compile_id or "", one.order)):
            ours = [range(link.first, link.last + 1) for link in each.links if (source, line) in link.places]
            lines = sorted({number for lines in ours for number in lines})
            if lines and not each.equals:
                text = _lines(loaded.text_of(each) or "")
                quoted = [f"{n}: {text[n - 1]}" for n in lines[:_MOST] if 0 < n <= len(text)]
                parts.append({**_artifact(each), "first": lines[0], "last": lines[-1], "text": "\n".join(quoted)})
        kernels = [
            {"name": each.name, "artifact": each.artifact, "first": each.first, "calls": list(each.calls)}
            for each in run.kernels
            if (source, line) in each.places
        ]
        nothing = "" if parts or kernels else "nothing that was compiled comes from this line"
        return {
            "file": run.sources[source].path,
            "code": _code(run, source, line),
            "parts": parts[:_MOST],
            "more_parts": max(0, len(parts) - _MOST),
            "kernels": kernels[:_MOST],
            "note": nothing,
        }

    def origin(self, dump: str, artifact: str, line: int, rank: str = "") -> Data:
        """Say which source lines a line of an artifact comes from, the innermost call last, and what it computes."""
        run = self._loaded(dump, rank)[0].run
        wanted = _find_artifact(run, artifact)
        links = [link for link in wanted.links if link.first <= line <= link.last]
        kernels = [each for each in run.kernels if each.artifact == wanted.id and each.first <= line <= each.last]
        places = [*(place for link in links for place in link.places), *(p for each in kernels for p in each.places)]
        inner = innermost_place(run, places)
        return {
            "lines": [_where(run, place) for place in dict.fromkeys(places)],
            "innermost": None if inner is None else _where(run, inner),
            "computes": [name for link in links for name in link.names],
            "kernels": [each.name for each in kernels],
        }

    def artifacts(self, dump: str, compile_id: str = "", rank: str = "") -> Data:
        """List the artifacts of a run or of one compilation: graphs of each stage, transformed code as source, guards,
        generated kernels. `artifact` has their text.
        """
        run = self._loaded(dump, rank)[0].run
        found = [_artifact(each) for each in run.artifacts if compile_id in ("", each.compile_id)]
        return {"artifacts": found[:400], "more": max(0, len(found) - 400)}

    def artifact(self, dump: str, artifact: str, first: int = 1, rank: str = "") -> Data:
        """Give the text of an artifact from line `first` on, at most 400 lines; `next` is where to go on."""
        loaded = self._loaded(dump, rank)[0]
        wanted = _find_artifact(loaded.run, artifact)
        text = loaded.text_of(wanted)
        if text is None:
            raise ToolError(f"the file of {wanted.id} is not there any more")
        lines = _lines(text)
        shown = lines[max(0, first - 1) :][:_MOST_LINES]
        end = max(1, first) + len(shown)
        return {
            **_artifact(wanted),
            "text": "\n".join(shown),
            "lines": len(lines),
            "next": end if end <= len(lines) else None,
        }

    def guards(self, dump: str, compile_id: str, rank: str = "") -> Data:
        """List the guards of a compilation: what must hold for its code to be used, and the line that made each."""
        run = self._loaded(dump, rank)[0].run
        return {"guards": [_with_line(run, each) for each in _find_compilation(run, compile_id).guards]}

    def memory(self, dump: str, rank: str = "") -> Data:
        """Say how much memory each graph needs at most, at which line, and what it keeps for the backward."""
        run = self._loaded(dump, rank)[0].run
        return memory_of(run, with_memory(run)).to_dict()

    def diff(self, before: str, after: str) -> Data:
        """Compare two dumps of a program, before and after a change: graph breaks, recompilations, graphs, kernels."""
        one, other = (self._loaded(dump, "")[0] for dump in (before, after))
        found = compare(one.named("before").side, other.named("after").side)
        return {
            "same": found.same,
            "worse": found.worse() if "graph breaks" in found.counts else [],
            "text": "\n".join(comparison_lines(found)),
        }

    def tools(self) -> Sequence[Tool]:
        """Return the functions that an agent may call."""
        return [
            self.overview,
            self.why,
            self.line,
            self.origin,
            self.artifacts,
            self.artifact,
            self.guards,
            self.memory,
            self.diff,
        ]

    def inside(self, path: str) -> str:
        """Return the whole path of a file below the root. Raises ``ToolError`` for any other."""
        if "\0" in path:
            raise ToolError("no file has a name with a null character")
        whole = os.path.realpath(os.path.join(self.root, path))
        if whole != self.root and not whole.startswith(os.path.join(self.root, "")):
            raise ToolError(f"{path} is outside of {self.root}, the directory that depyf mcp was started for")
        return whole

    def _loaded(self, dump: str, rank: str) -> Tuple[Loaded, List[str]]:
        path = self.inside(dump)
        state = _state(path)
        known = self._known.pop(path, None)
        if known is None or known[0] != state:
            try:
                known = state, load_ranks([path]).runs
            except synchronous(NothingToRead, OSError, ValueError) as error:
                raise ToolError(f"{dump}: {error}") from error
        self._known[path] = known
        for oldest in list(self._known)[:-_MOST_KEPT]:
            del self._known[oldest]
        names = [each.name for each in known[1]]
        found = next((each for each in known[1] if rank in ("", each.name)), None)
        if found is None:
            raise ToolError(f"there is no {rank!r}; there are: {', '.join(names)}")
        return found, names


class ProgramTools:
    """Run programs below the root of ``dumps``, each in a process of its own; nothing of it reaches this process."""

    def __init__(self, dumps: DumpTools) -> None:
        self._dumps = dumps

    def run(self, script: str, output: str, arguments: Sequence[str] = (), timeout: float = _SECONDS) -> Data:
        """Run a program as it is, and dump what it compiles into the directory `output`; then ask `overview`.

        script: a Python file; arguments: its arguments; timeout: in seconds. The answer has the exit status, what the
        program printed (the end of it), and the findings.
        """
        words = ["run", "-o", self._dumps.inside(output), "--no-stepping"]
        return self._answered(words, [self._dumps.inside(script), *arguments], timeout)

    def compare(
        self,
        script: str,
        step: int,
        *,
        by_calls: bool = False,
        arguments: Sequence[str] = (),
        timeout: float = _SECONDS,
    ) -> Data:
        """Run a program, and compare the compiled calls of one step with eager mode: which operation differs?

        step: counted from 0; a step ends with Optimizer.step(), or, with by_calls, with the outermost compiled call.
        """
        at = "--at-call" if by_calls else "--at"
        return self._done(["shadow", at, str(step), self._dumps.inside(script), *arguments], timeout)

    def fix(self, script: str, arguments: Sequence[str] = (), timeout: float = _SECONDS) -> Data:
        """Try edits that remove graph breaks and recompilations of a program; nothing is written.

        Each edit is run in a copy, and kept only if its finding is gone and the program computes, prints and writes the
        same. The answer has the kept edits as a `diff`, and each finding with what was tried, and why it was refused.
        """
        inside = os.path.join(".", os.path.relpath(self._dumps.inside(script), self._dumps.root))
        return self._answered(["fix", "-q"], [inside, *arguments], timeout)

    def check_graph(self, dump: str, graph: str, timeout: float = _SECONDS) -> Data:
        """Write one graph of a dump as a script of its own, and run it compiled and eagerly: does it fail alone?

        graph: a compile id or __compiled_fn_N. The script runs the text of the graph: not for a dump of a stranger.
        """
        folder = self._dumps.inside(dump)
        path = os.path.join(folder, f"extracted_{''.join(each if each.isalnum() else '_' for each in graph)}.py")
        if os.path.islink(path):
            raise ToolError(f"{path} is a link: nothing is written through it")
        done = self._done(["extract", "-o", path, "--json", "--", folder, graph], timeout)
        try:
            done["answer"] = json.loads(str(done["printed"]))["answer"]
        except synchronous(ValueError, KeyError):  # it has printed something else, which is under ``printed``
            done["answer"] = None
        return done

    def tools(self) -> Sequence[Tool]:
        """Return the functions that an agent may call."""
        return [self.run, self.compare, self.fix, self.check_graph]

    def _answered(self, words: Sequence[str], program: Sequence[str], timeout: float) -> Data:
        """Run a command that writes its answer into a file; return the answer with the exit status."""
        with tempfile.TemporaryDirectory(prefix="depyf_mcp_") as temporary:
            path = os.path.join(temporary, "answer.json")
            done = self._done([*words, "--json", path, *program], timeout)
            try:
                with open(path, encoding="utf-8") as file:
                    done["answer"] = json.load(file)["answer"]
            except synchronous(OSError, ValueError, KeyError):
                done["answer"] = None
        return done

    def _done(self, words: Sequence[str], timeout: float) -> Data:
        """Run a command of depyf; return its exit status and the end of what it printed."""
        with subprocess.Popen(
            [*own_command("depyf.cli"), *words],
            cwd=self._dumps.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            try:
                outputs = process.communicate(timeout=min(timeout, _SECONDS))
            except BaseException as error:
                _kill(process)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise ToolError(f"stopped after {min(timeout, _SECONDS):g} s") from error
                raise
        printed, errors = (each.decode(errors="backslashreplace") for each in outputs)
        return {"status": process.returncode, "printed": _end_of(printed), "errors": _end_of(errors)}


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a program with the processes that it has started: ranks, and workers that load data."""
    if hasattr(os, "killpg"):
        with suppressed(OSError):  # it has ended meanwhile
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def _functions(run: Run) -> Iterator[Data]:
    """Yield the functions that were compiled, each with its compilations."""
    for number, function in enumerate(run.functions):
        ids = [each.compile_id for each in run.compilations if each.function == number]
        if ids:
            resumes = None if function.resumes is None else run.functions[function.resumes].qualified_name
            place = (function.source, function.resumes_at or function.first_line)
            yield {"name": function.qualified_name, **_where(run, place), "compile_ids": ids, "resumes": resumes}


def _where(run: Run, place: Place) -> Data:
    source, line = place
    if not 0 <= source < len(run.sources):
        return {"file": None, "line": line, "code": None}
    return {"file": run.sources[source].path, "line": line, "code": _code(run, source, line)}


def _code(run: Run, source: int, line: int) -> Optional[str]:
    code = _lines(run.sources[source].text or "")
    return code[line - 1].strip() if 0 < line <= len(code) else None


def _lines(text: str) -> List[str]:
    """Return the lines of a text as Python counts them: a form feed ends none."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _with_line(run: Run, part: object) -> object:
    """Return a part of the model as data, in which each place is a file, a line and its code."""
    return _resolved(run, as_data(part))


def _resolved(run: Run, data: object) -> object:
    if isinstance(data, list):
        return [_resolved(run, each) for each in data]
    if not isinstance(data, dict):
        return data
    found: Data = {}
    for name, value in data.items():
        if name == "place" and isinstance(value, list):
            found.update(_where(run, (value[0], value[1])))
        elif name == "stack" and isinstance(value, list):
            found["stack"] = [_where(run, (each[0], each[1])) for each in value]
        elif name != "function":  # an index
            found[name] = _resolved(run, value)
    return found


def _artifact(artifact: Artifact) -> Data:
    return {
        "id": artifact.id,
        "kind": artifact.kind,
        "stage": artifact.stage,
        "compile_id": artifact.compile_id,
        "backward": artifact.backward,
        "same_as": artifact.equals or None,
    }


def _source(run: Run, file: str) -> int:
    """Return the index of a source file by the end of its path. Raises ``ToolError``."""
    wanted = file.replace("\\", "/")
    paths = [each.path.replace("\\", "/") for each in run.sources]
    end = wanted[2:] if wanted.startswith("./") else wanted
    found = [at for at, path in enumerate(paths) if path == wanted]
    found = found or [at for at, path in enumerate(paths) if path.endswith(f"/{end.lstrip('/')}")]
    if len(found) == 1:
        return found[0]
    what = f"{counted(len(found), 'file')} of this run" if found else "no file of this run"
    raise ToolError(f"{what} ends with {file}; there are: {', '.join(paths[at] for at in found) or ', '.join(paths)}")


def _find_compilation(run: Run, compile_id: str) -> Compilation:
    """Return a compilation by its id. Raises ``ToolError``."""
    found = next((each for each in run.compilations if each.compile_id == compile_id), None)
    if found is None:
        known = ", ".join(each.compile_id for each in run.compilations[:_MOST]) or "none"
        raise ToolError(f"there is no compilation {compile_id}; there are: {known}")
    return found


def _find_artifact(run: Run, name: str) -> Artifact:
    """Return an artifact by its id. Raises ``ToolError``."""
    found = next((each for each in run.artifacts if each.id == name), None)
    if found is None:
        raise ToolError(f"there is no artifact {name!r}: ask `artifacts` for the names")
    return found


def _state(path: str) -> Tuple[object, ...]:
    """Return what changes when a dump or a log is written: the times and sizes of its files."""
    try:
        inside = sorted(os.listdir(path)) if os.path.isdir(path) else []
        files = [path, *(os.path.join(path, each) for each in inside)]
        known = [(each, os.stat(each)) for each in files]
    except synchronous(OSError):  # it is being written
        return (object(),)
    return tuple((each, status.st_size, status.st_mtime_ns, status.st_ino) for each, status in known)


def _end_of(text: str) -> str:
    lines = text.splitlines()
    left = len(lines) - _MOST_LINES
    return "\n".join([f"... {left} lines before", *lines[-_MOST_LINES:]] if left > 0 else lines)
