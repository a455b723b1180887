"""``extract``: one compiled graph as a standalone script, for a bug report."""

from __future__ import annotations

import os
import re
from typing import Callable, List, Optional, Sequence, Tuple, Union

from depyf.answers.bisected import Bisected
from depyf.answers.extracted import Extracted
from depyf.answers.graph_ids import id_in_dump, normalized
from depyf.base.late_regex import regex
from depyf.base.regular_files import read_text
from depyf.dynamo.entries.call_target import resolve
from depyf.dynamo.hooks import bisector, torch_names
from depyf.dynamo.questions.compare.locate import without_views
from depyf.dynamo.questions.compare.question import backend_of
from depyf.dynamo.questions.extract.sources import GraphSource, fake_inputs, held, run_of
from depyf.dynamo.scripts.backend import backend_in_script
from depyf.dynamo.scripts.from_text import script_from_text
from depyf.dynamo.scripts.running import STOPPED, environment, run_script
from depyf.dynamo.scripts.whole import HowItRuns, RecordedCall, Script, write_script
from depyf.dynamo.store.names import compiled_fn_number
from depyf.report.read.reading import manifests_in_directory
from depyf.torch_trace import file_names
from depyf.torch_trace.log_file import find_logs
from depyf.torch_trace.stages import NamedStage, Stage

_PATIENCE_OF_BISECTOR = 6000
"""Seconds that PyTorch's bisector may take with a script."""

_COMPILE_ID = regex(r"!?\d+/\d+.*")

_TITLE = regex(r"\A#.*, compile id (\S+)$", re.MULTILINE)
_PIECE = regex(r"\A#.*, piece ([^\s,]+)", re.MULTILINE)
"""The first line of a graph file: with the compile id, and with which piece of a split graph it is."""


GraphId = Union[int, str, None]


def extract(
    compiled: object,
    graph_id: GraphId = None,
    *args: object,
    path: Optional[str] = None,
    values: bool = True,
    check: bool = True,
    bisect: bool = False,
    **kwargs: object,
) -> Extracted:
    """Write one graph of ``compiled`` as a standalone script, and run the script to check it. ``compiled``: what
    ``torch.compile`` returned for a function, method or module, or what holds that (see ``why``); a dump directory; or
    what ``prepare_debug`` returned. ``graph_id``: ``1`` or ``"__compiled_fn_1"`` (as in a dump) or a compile id
    (``"0/0"``); with a stage (``"__compiled_fn_1.Forward_graph"``), or without one for the graph that Dynamo captured.
    A stage alone, or nothing, is enough where it identifies one graph. ``args``, ``kwargs``: ``compiled`` is called on
    copies of them, and the inputs of the graph in that call are saved beside the script if ``values`` is true; without
    them the script generates values. ``path``: of the script (default: ``<graph>.py`` in the working directory).
    ``check``: run the script in a process of its own. ``bisect``: if it fails there, let PyTorch's bisector find the
    part of the compiler that makes it fail, which runs it some twenty times.

    Raises ``LookupError``, which lists the graphs that exist, if ``graph_id`` matches none or several of them, and
    ``TypeError`` for objects that can't be called or copied.
    """
    torch_names.require_torch("extract")
    directory = getattr(compiled, "dump_src_dir", compiled)  # of a session
    if isinstance(directory, (str, os.PathLike)):
        return extract_file(os.fspath(directory), graph_id, path=path, check=check, bisect=bisect)
    found = resolve(compiled, "extract")
    graph_id = normalized(graph_id) if isinstance(graph_id, str) else graph_id
    if args or kwargs:
        sources = run_of(found, args, kwargs, lambda each: _is_of(each.name, each.compile_id, graph_id))
    else:
        sources = held(found)
    if not sources and (found.skip_reason or found.parts):
        parts = f"compiled by themselves are {', '.join(found.parts)}: extract from those"
        raise LookupError(f"nothing is compiled here that has a graph: {found.skip_reason or parts}")
    had_arguments = bool(args or kwargs)
    source = chosen(
        sources, graph_id, had_arguments=had_arguments, others=(lambda: held(found)) if had_arguments else list
    )
    backend, name = backend_of(None, found.entered)
    named = backend_in_script(backend, name)
    script = write(source, path or f"{source.name}.py", named.name, values=values)
    gaps = [f"not in the script: {named.gap}"] if named.gap else []
    return checked(source.name, script, (*source.notes, *gaps), check=check, bisect=bisect)


def extract_file(
    directory: str, graph_id: GraphId, *, path: Optional[str] = None, check: bool = True, bisect: bool = False
) -> Extracted:
    """Write one graph of a dump directory as a script, from its text alone; ``graph_id`` may be a file's name, too."""
    _refuse_logs(directory)
    graph_id = id_in_dump(directory, graph_id) if isinstance(graph_id, str) else graph_id
    sources = _files(directory)
    source = chosen(sources, graph_id, had_arguments=False)
    name = _name(source, sources)
    script = write(source, path or f"{name}.py", "inductor", values=False)
    return checked(name, script, source.notes, check=check, bisect=bisect)


def _refuse_logs(path: str) -> None:
    """Raise ``LookupError`` for a log of PyTorch's trace, and a directory that has nothing but logs."""
    logs = find_logs(path)
    if logs and not any(map(file_names.graph_in, file_names.listed(path) if os.path.isdir(path) else ())):
        raise LookupError(
            f"{logs[0]} is a log of PyTorch's trace, and graphs are extracted from dump directories: run the program "
            "again with `depyf run -o DIR`, or with DEPYF_DUMP=DIR set, and extract from DIR"
        )
    if os.path.isfile(path):
        raise LookupError(f"{path} is a file, and graphs are extracted from dump directories")


def _files(directory: str) -> List[GraphSource]:
    """Return the graph files of a dump, including files of named stages (of passes and backends)."""
    sources = []
    stages = {stage.value: stage for stage in Stage}
    names = file_names.listed(directory)
    files = {file_names.without_folder(name): name for name in names}
    # A manifest knows which of two files of one name is newer, and which state is in the file of another.
    artifacts = [each for loaded in manifests_in_directory(directory)[0] for each in loaded.run.artifacts]
    files.update({each.id: each.path for each in artifacts if each.path is not None and each.path in names})
    shared = {each.id for each in artifacts if each.equals}
    for stage_name, name in sorted(files.items()):
        match = file_names.graph_in(stage_name)
        if match is None:
            continue
        text = read_text(os.path.join(directory, name), follow=False)
        function, value, index = match
        if value in stages or stage_name in shared or text.startswith(f"# {value} of {function}"):
            of_id, of_piece = _TITLE.search(text), _PIECE.search(text)
            stage = stages.get(value) or NamedStage(value)
            source = GraphSource(
                function, stage, of_id and of_id[1], text=text, index=index, piece=of_piece and of_piece[1]
            )
            sources.append(source)
    if not sources:
        raise LookupError(f"there are no graph files in {directory}")
    return sources


def chosen(
    sources: Sequence[GraphSource],
    graph_id: GraphId,
    *,
    had_arguments: bool,
    others: Callable[[], List[GraphSource]] = list,
) -> GraphSource:
    """Return the source that ``graph_id`` names. ``others`` finds the sources that exist without the arguments."""
    if not sources:
        more = "" if had_arguments else " Give its arguments (depyf.extract(compiled, None, x)), or call it first"
        raise LookupError(f"nothing is compiled here that has a graph.{more}")
    # A function's name without a stage names the graph that Dynamo captured; any other name has to fit one graph.
    found = [source for source in sources if _fits(source, graph_id)]
    if not found and isinstance(graph_id, str) and "#" in graph_id:  # of the page, which numbers what a reset repeats
        found = [source for source in sources if _fits(source, re.sub(r"#\d+", "", graph_id))]
    if len({source.function for source in found}) == 1:
        captured = [source for source in found if source.stage is Stage.CAPTURED]
        alike = captured or found
        if len({(source.stage, source.index) for source in alike}) == 1:
            return alike[0]
    raise LookupError(_what_there_is(sources, graph_id, several=bool(found), others=others()))


def _what_there_is(
    sources: Sequence[GraphSource], graph_id: GraphId, *, several: bool, others: Sequence[GraphSource]
) -> str:
    there = _listed(sources)
    compiled = [each for each in (*sources, *others) if compiled_fn_number(each.function) is not None]
    if _COMPILE_ID.fullmatch(str(graph_id)) and compiled and not any(each.compile_id for each in compiled):
        there += ". This PyTorch does not report the compile ids of what is compiled already"
    if graph_id is None:
        return f"give the id of one graph as the second argument; there are: {there}"
    if several:
        fitting = [source for source in sources if _fits(source, graph_id)]
        return f"several graphs are called {graph_id!r}; there are: {_listed(fitting)}"
    if any(_fits(each, graph_id) for each in others):
        return (
            f"a call with these arguments does not run {graph_id!r}; it runs: {there}. "
            f"Without arguments, {graph_id!r} can be extracted"
        )
    without = [each for each in others if each.name not in {source.name for source in sources}]
    more = f"; and without arguments: {_listed(without)}" if without else ""
    return f"no graph is called {graph_id!r}; there are: {there}{more}"


def _listed(sources: Sequence[GraphSource]) -> str:
    """Return the names of the graphs, one a line if they are many."""
    names = [
        f"{_name(each, sources)}{f' [{each.compile_id}]' if each.compile_id else ''}"
        f"{f' ({each.piece})' if each.piece else ''}"
        for each in sources
    ]
    return "".join(f"\n  {each}" for each in names) if len(names) > _MOST_IN_A_LINE else ", ".join(names)


_MOST_IN_A_LINE = 3


def _name(source: GraphSource, among: Sequence[GraphSource]) -> str:
    """Return the unique name of ``source``: with its index, if others have the same function and stage."""
    others = {each.index for each in among if each.name == source.name}
    return f"{source.name}.{source.index}" if len(others) > 1 else source.name


def _is_of(function: str, compile_id: Optional[str], graph_id: GraphId) -> bool:
    """Return whether a graph of this compiled function is asked for, at any stage."""
    if isinstance(graph_id, int):
        return compiled_fn_number(function) == graph_id
    named = str(graph_id).partition(".")[0]
    return graph_id is not None and named in (function, compile_id, str(compiled_fn_number(function)))


def _fits(source: GraphSource, graph_id: GraphId) -> bool:
    if graph_id is None:
        return True
    if isinstance(graph_id, int):
        return compiled_fn_number(source.function) == graph_id
    stage = source.stage.value
    if graph_id in (stage, f"{stage}.{source.index}"):
        return True
    _, _, asked = graph_id.partition(".")
    return asked in ("", stage, f"{stage}.{source.index}") and _is_of(source.function, source.compile_id, graph_id)


def write(source: GraphSource, path: str, backend: str, *, values: bool) -> Script:
    """Write the script of a source."""
    title = f"{source.stage.value} of {source.function}"
    if source.piece:
        title += f", piece {source.piece}"
    if source.compile_id:
        title += f", compile id {source.compile_id}"
    if source.module is None:
        return script_from_text(source.text, path, title=title, backend=backend)
    of_dynamo = source.stage in (Stage.CAPTURED, Stage.AFTER_PRE_GRAD)
    call = source.call
    module = source.module
    if call is not None and not of_dynamo:
        module = without_views(module, call.inputs)
    gradients = of_dynamo and torch_names.module("torch").is_grad_enabled()
    return write_script(
        path,
        module,
        fake_inputs(source.module) if call is None else call.inputs,
        title=title,
        recorded=RecordedCall(call.outputs, call.rng_state)
        if values and call is not None and not source.notes
        else None,
        how=HowItRuns(backend, contexts=surroundings() if of_dynamo else (), gradients=gradients),
    )


def surroundings() -> Tuple[str, ...]:
    """Return the context managers that a graph of Dynamo is run in here, as expressions."""
    import torch

    found = [] if torch.is_grad_enabled() else ["torch.no_grad()"]
    for device in ("cpu", "cuda"):
        dtype = _autocast_on(device)
        if dtype is not None:
            found.append(f'torch.autocast("{device}", dtype={dtype})')
    return tuple(found)


def _autocast_on(device: str) -> object:
    """Return the type of autocast for this type of device now, ``None`` if it is off."""
    import torch

    if hasattr(torch, "get_autocast_dtype"):
        return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
    if device == "cpu":  # up to 2.3
        return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None
    return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None


def checked(name: str, script: Script, notes: Sequence[str], *, check: bool, bisect: bool = False) -> Extracted:
    """Return the result, after running the script if requested."""
    runs, output = run_script(script.path) if check else (None, "")
    bisected = None
    if bisect and output == STOPPED:
        bisected = Bisected(message="not run: the script does not end")
    elif bisect and runs is False:
        bisected = bisector.bisect_script(script.path, environment(), _PATIENCE_OF_BISECTOR)
    return Extracted(name, script.path, script.values, runs, output, (*notes, *script.notes), bisected)
