"""Write a file for every stage of every graph, and make a graph that runs run from its file.

The trace sends each stage as text. A ``GraphModule`` whose bytecode is what that text compiles to is relocated onto the
file. A ``GraphModule`` that only takes its arguments in another way (aot_eager boxes them) is relocated too, after its
file was rewritten with the arguments that it takes.
"""

from __future__ import annotations

import os
import sys
import weakref
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Dict, Iterable, List, Optional, Sequence

from depyf.base.locks import Lock
from depyf.base.own_builtins import keep_builtins
from depyf.base.quick_dataclass import replace
from depyf.dynamo.capture.records import GraphFile, KernelFile
from depyf.dynamo.capture.relocate import SourceFile
from depyf.dynamo.capture.session import Session
from depyf.dynamo.capture.what_runs import RUNS, note_what_runs
from depyf.dynamo.hooks import frame_evaluation, private_names
from depyf.dynamo.hooks.attribution import GraphOwners, current_compile_id, current_piece, origin_of
from depyf.dynamo.hooks.backends import run_by_forward
from depyf.dynamo.hooks.patching import Undo, replace_attribute
from depyf.dynamo.hooks.readable_graphs import readable_text
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.store.names import stage_stem
from depyf.torch_trace.events import Event
from depyf.torch_trace.outlines import Forward, Outline, boxed, forwards, with_input_types
from depyf.torch_trace.stages import (
    AnyStage,
    GraphText,
    NamedStage,
    Stage,
    compiled_graph,
    graph_file,
    graph_of,
    is_between,
    is_rarely_changed,
    stage_of,
    with_status,
    without_imports,
)

keep_builtins(globals())

if TYPE_CHECKING:
    import torch


class GraphModules:
    """The graph modules that are made during each compilation, held weakly until it ends."""

    def __init__(self, owners: GraphOwners) -> None:
        self._lock = Lock()
        self._owners = owners
        self._made: Dict[str, List[weakref.ref[torch.fx.GraphModule]]] = {}

    def watch(self) -> Optional[Undo]:
        """Start to record every graph module; return the function that stops it."""
        cls = private_names.GRAPH_MODULE.find_or_report()
        if cls is None:
            return None
        original = cls.__init__

        def __init__(module: torch.fx.GraphModule, *args: object, **kwargs: object) -> None:  # noqa: N807 - it replaces one
            original(module, *args, **kwargs)
            self._note(module, sys._getframe(1), args[0] if args else kwargs.get("root"))

        __init__.__doc__ = original.__doc__
        __init__.__wrapped__ = original  # type: ignore[attr-defined]
        return replace_attribute(cls, "__init__", __init__)

    @safely("noting a graph module")
    def _note(self, module: torch.fx.GraphModule, maker: FrameType, root: object) -> None:
        compile_id = current_compile_id()
        self._owners.note(module, compile_id, origin_of(maker, root))
        if compile_id is not None:
            with self._lock:
                self._made.setdefault(compile_id, []).append(weakref.ref(module))

    def alive(self, compile_id: str) -> List[torch.fx.GraphModule]:
        """Return the modules of this compilation so far that still exist."""
        with self._lock:
            return _alive(self._made.get(compile_id, ()))

    def take(self, compile_id: str) -> List[torch.fx.GraphModule]:
        """Return and drop the live modules made during this compilation."""
        with self._lock:
            return _alive(self._made.pop(compile_id, ()))


def _alive(made: Iterable[weakref.ref[torch.fx.GraphModule]]) -> List[torch.fx.GraphModule]:
    return [module for module in (ref() for ref in made) if module is not None]


def dump_graph(session: Session, event: Event) -> None:
    """Write the file of the stage that the event reports, if it reports a stage."""
    stage = stage_of(event.name, event.payload)
    if stage is None or event.payload is None:
        return
    if isinstance(stage, NamedStage):
        stage = NamedStage(stage_stem(session.stable.text(stage.value)))
    function = session.function_name(event.compile_id)
    index = session.directory.take_number(f"{function}.{stage.value}")
    write_graph(session, event.compile_id, function, stage, index, event.payload, current_piece())


def write_graph(
    session: Session,
    compile_id: Optional[str],
    function: str,
    stage: AnyStage,
    index: int,
    readable: str,
    piece: str = "",
) -> GraphFile:
    """Write (or overwrite) one graph's file from its readable text and record it. Return the record, without a path if
    the file is written with the next graph of the compilation, and only if that differs."""
    file = GraphFile(compile_id, function, stage, index, None, "", piece=piece)
    made = _text_of(session, file, readable)
    # A file that an earlier run has left is replaced at once.
    waits = is_rarely_changed(stage) and compile_id is not None and not session.everything
    if waits and not session.directory.has(session.in_stages(file.name)):
        _write_held(session, compile_id)
        session.held[compile_id] = file, made
        return file
    return _write(session, file, made)


def _text_of(session: Session, file: GraphFile, readable: str) -> GraphText:
    of_piece = f", piece {file.piece}" if file.piece else ""
    title = f"{file.stage.value} of {file.function}{of_piece}"
    if file.compile_id:
        title += f", compile id {file.compile_id}"
    return graph_file(session.stable.text(readable), title)


def _write(session: Session, file: GraphFile, made: GraphText) -> GraphFile:
    held = session.held.get(file.compile_id)
    if held is None or is_between(file.stage) or graph_of(held[1].text) != graph_of(made.text):
        _write_held(session, file.compile_id)
        return _written(session, file, made)
    session.held.pop(file.compile_id, None)  # another thread may have ended the session
    return _written(session, file, made, before=held[0])


def write_held_graphs(session: Session) -> None:
    """Write the graphs that still wait for the next one of their compilation, which has not come to its end."""
    for compile_id in list(session.held):
        _write_held(session, compile_id)


def _write_held(session: Session, compile_id: Optional[str]) -> None:
    """Write the graph that waits for the next one of this compilation, if there is one."""
    held = session.held.pop(compile_id, None)
    if held is not None:
        _written(session, *held)


def _written(session: Session, file: GraphFile, made: GraphText, *, before: Optional[GraphFile] = None) -> GraphFile:
    """Write and record a graph, and with it the graph ``before``, which is equal and has waited for this one."""
    aside = is_between(file.stage) and not session.everything
    equal = _equal_files(session, file, made.text)
    name = session.in_stages(file.name) if aside else file.name
    # A file that an earlier run has left is replaced, and not shared: it would be taken for this run's.
    if aside and equal and not session.directory.has(name):
        file = _sharing(file, equal[-1])
        session.add(file)
        return file
    path = session.directory.write(name, made.text)
    file = replace(file, path=path, text=made.text, runs=False)
    if path is not None and _may_run(file):
        session.graph_texts[path] = made
    if before is not None and path is not None:
        session.add(_sharing(before, file))
    session.add(file)
    if path is not None and not aside:
        # An earlier state with this text (BEFORE_POST_GRAD, where the passes changed nothing) needs no file any more.
        # The first of the equal ones has the file, and the others share it.
        owned = [each for each in equal if is_between(each.stage) and not each.equals and each.path != path]
        gone = {each.path for each in owned if each.path is not None and session.directory.remove_own(each.path)}
        for each in equal:
            if each.path in gone:
                session.add(_sharing(each, file))
    return file


def _equal_files(session: Session, file: GraphFile, text: str) -> List[GraphFile]:
    """Return the other stages of this graph so far that have a file with the same graph; none where all are kept."""
    if session.everything:
        return []
    files, _ = session.files_of(file.function)
    of_this = (file.compile_id, file.piece)
    return [
        each
        for each in files
        if each.path is not None
        and (each.stage, each.index) != (file.stage, file.index)
        and (each.compile_id, each.piece) == of_this
        and graph_of(each.text) == graph_of(text)
    ]


def _sharing(file: GraphFile, owner: GraphFile) -> GraphFile:
    """Return the record of a stage whose text is in the file of another stage."""
    return replace(file, path=owner.path, text=owner.text, runs=False, equals=os.path.basename(owner.path or ""))


def _may_run(file: GraphFile) -> bool:
    return isinstance(file.stage, Stage) and file.stage.facts.may_run


def run_from_files(session: Session, compile_id: str, modules: List[torch.fx.GraphModule]) -> None:
    """Relocate the graphs of this compilation among ``modules`` onto the files of their stages.

    If Inductor made a kernel module, no graph runs. A captured graph that a user's backend has changed gets its own
    file; with ``clean_wild_fx_code=False`` so does every other module.
    """
    _write_held(session, compile_id)  # there is one if the compilation has failed before its next graph
    _run_from_files(session, compile_id, modules)
    note_what_runs(session, compile_id)
    for file in session.graph_files(compile_id):
        session.graph_texts.pop(file.path or "", None)
    compiled_graph.cache_clear()


def _run_from_files(session: Session, compile_id: str, modules: List[torch.fx.GraphModule]) -> None:
    if not modules:
        return
    # Inductor runs its own code, and no graph. Without a kernel (eager, aot_eager, the user's backend) any stage may
    # run.
    if not session.records(KernelFile, compile_id):
        for file in session.graph_files(compile_id):
            if _may_run(file) and file.path is not None:
                _relocate_onto(session, file, modules)
        # A captured graph that matches no file any more has been changed in place by the backend.
        for module in modules:
            if _is_captured(module) and not _has_file(session, module):
                _dump_module(session, compile_id, module, Stage.BACKEND)
    if not session.clean_wild_fx_code:
        for module in modules:
            if not _has_file(session, module):
                _dump_module(session, compile_id, module, Stage.WILD)


def _relocate_onto(session: Session, file: GraphFile, modules: List[torch.fx.GraphModule]) -> None:
    # ``print_readable`` prints the graphs in a graph (of ``torch.cond``, of autograd functions) below the outer one:
    # each class in the text is a module. Comparing outlines (inputs and results) is cheap and sorts out nearly all
    # modules.
    functions = forwards(file.text)
    printed = [function.outline for function in functions]
    candidates = [module for module in modules if any(_is_outline_of(module, each) for each in printed)]
    left = _not_relocated(session, candidates, file)
    whole = [module for module in left if _is_outline_of(module, printed[0])]
    if not whole or file.stage is Stage.CAPTURED:
        return
    # The same graph with other bytecode: ``boxed_nop`` of PyTorch 2.13's aot_eager sets ``_BoxedCodeGen`` after the
    # graph was reported.     in the trace:   def forward(self, primals_1, primals_2):     what runs:      def
    # forward(self, args):                         primals_1, primals_2, = args                         args.clear() The
    # file gets the text that runs.
    made = _text_that_runs(session, file, whole[0], functions)
    file = _write(session, file, replace(made, text=with_status(made.text, RUNS)))
    # Modules that were relocated before are relocated again: their lines have moved, and printing a graph recompiles
    # the graphs in it.
    _not_relocated(session, candidates, file)


def _text_that_runs(
    session: Session, file: GraphFile, module: torch.fx.GraphModule, functions: Sequence[Forward]
) -> GraphText:
    """Return the text of a file with the arguments of ``module``.

    The reported text is edited and checked against the bytecode. Printing the graph again, which takes twice as long,
    is for what the edit does not reproduce.
    """
    _, keyword, graph = file.text.partition("\nclass ")
    readable = boxed(f"class {graph}", module.code) if keyword else None
    forward = vars(type(module)).get("forward")
    if readable is not None and isinstance(forward, FunctionType):
        made = _text_of(session, file, with_input_types(readable, functions))
        if made.code is not None and SourceFile(made.code, "").relocated(forward.__code__) is not None:
            return made
    return _text_of(session, file, with_input_types(readable_text(module), functions))


def _is_outline_of(module: torch.fx.GraphModule, printed: Outline) -> bool:
    nodes = list(module.graph.nodes)
    inputs = tuple(str(node.target) for node in nodes if node.op == "placeholder")
    results = tuple(node.name for node in nodes if node.op not in ("placeholder", "output"))
    # An input whose name differs from the argument's is assigned first (``x = l_x_``), so the text may have more
    # results than the graph has operations: the last ones count.
    return inputs == printed.inputs and printed.results[len(printed.results) - len(results) :] == results


def _not_relocated(
    session: Session, modules: List[torch.fx.GraphModule], file: GraphFile
) -> List[torch.fx.GraphModule]:
    """Make each module whose bytecode is in ``file`` run from there, if stepping is on; return the others."""
    if file.path is None or not modules:
        return modules
    made = session.graph_texts.get(file.path)
    if made is None or made.code is None:
        source = SourceFile(without_imports(file.text), file.path)
    else:
        source = SourceFile(made.code, file.path, made.above)
    left = [module for module in modules if not _relocate(session, module, source)]
    if len(left) < len(modules):
        session.add(replace(file, runs=True))
    return left


def _relocate(session: Session, module: torch.fx.GraphModule, source: SourceFile) -> bool:
    # ``_LazyGraphModule`` has the code of ``_lazy_forward`` until the first call; ``real_recompile`` generates its own.
    getattr(module, "real_recompile", lambda: None)()
    forward = vars(type(module)).get("forward")
    moved = source.relocated(forward.__code__) if isinstance(forward, FunctionType) else None
    if moved is None or not isinstance(forward, FunctionType):
        return False
    if not session.stepping:
        session.unmoved.add(module)
        return True
    # Dynamo must not trace the graph like a function of the user, now that it stands in a file.
    frame_evaluation.skip_code(moved)
    forward.__code__ = moved
    run_by_forward(module)
    return True


def _is_captured(module: torch.fx.GraphModule) -> bool:
    """Return whether Dynamo made this module for the backend. ``meta["dynamo_compile_id"]`` is there from 2.7 on."""
    return "dynamo_compile_id" in module.meta or hasattr(module, "compile_subgraph_reason")


def _has_file(session: Session, module: torch.fx.GraphModule) -> bool:
    if module in session.unmoved:
        return True
    code = getattr(vars(type(module)).get("forward"), "__code__", None)
    return code is not None and session.directory.is_in(code.co_filename)


def _dump_module(session: Session, compile_id: str, module: torch.fx.GraphModule, stage: Stage) -> None:
    function = session.function_name(compile_id)
    index = session.directory.take_number(f"{function}.{stage.value}")
    _not_relocated(session, [module], write_graph(session, compile_id, function, stage, index, readable_text(module)))
