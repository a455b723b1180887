"""Attribute work that PyTorch does outside of a Dynamo compilation to a compile id, and to a piece of a split graph.

PyTorch has a compile id only while Dynamo compiles. This module finds the compile id of work at other times:

- ``torch._inductor.standalone_compile`` may be called without Dynamo, or with a piece of a graph that Dynamo captured
  earlier (vLLM splits graphs and compiles the pieces when they are first called). The piece is a graph module, and
  ``GraphOwners`` knows from which graph it was split or copied.
- ``torch.compile(...).aot_compile`` calls the backend after the capture has ended, on the same thread.
- Work that belongs to no Dynamo compilation gets an id that is made up: ``standalone/0``.
"""

from __future__ import annotations

import functools
import itertools
import json
import sys
import threading
import time
import weakref
from dataclasses import field
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Callable, Dict, Iterator, List, Mapping, Optional, Protocol, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.own_builtins import keep_builtins
from depyf.base.own_package import is_own
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.hooks import compile_ids, known_code, private_names
from depyf.dynamo.hooks.patching import Undo, replace_everywhere
from depyf.dynamo.hooks.safely import safely
from depyf.torch_trace.events import FORWARD_METRICS, GRAPH_PASS, LATER, PIECE_STARTS, STANDALONE, Event

keep_builtins(globals())

if TYPE_CHECKING:
    import torch

_here = threading.local()

_numbers = itertools.count()


def current_compile_id() -> Optional[str]:
    """Return the id of the compilation that this thread works for, ``None`` if there is none."""
    return compile_ids.current_compile_id() or getattr(_here, "compile_id", None)


def current_piece() -> str:
    """Return the name of the piece of a split graph that this thread compiles; empty for a whole graph."""
    return getattr(_here, "piece", "")


def standalone_name(compile_id: str) -> Tuple[str, int]:
    """Return ``__compiled_fn_-1`` of ``standalone/0``, and its number: without Dynamo there is no other number."""
    number = -1 - int(compile_id[len(STANDALONE) :])
    return f"__compiled_fn_{number}", number


@dataclass
class _Owner:
    """A compilation that graph modules belong to. Its id is made up when a compiled piece belongs to no Dynamo
    compilation. ``begun`` counts how often each piece was compiled.
    """

    compile_id: Optional[str]
    begun: Dict[str, int] = field(default_factory=dict)


class GraphOwners:
    """Maps live graph modules to their compilation, and pieces to the graph that they were split from."""

    def __init__(self) -> None:
        self._known: Dict[int, Tuple[weakref.ref[torch.nn.Module], _Owner, str]] = {}

    def note(self, module: torch.fx.GraphModule, compile_id: Optional[str], origin: object) -> None:
        """Record a new graph module, made while this thread worked for ``compile_id``, as a copy of ``origin`` if that
        is a graph module. The graph modules that it calls are its pieces.
        """
        # A copy belongs to the compilation and the piece of its original; a new module to the compilation that runs.
        owner, piece = self._of(origin) or (_Owner(compile_id), "")
        pieces = list(_pieces(module))
        # A module without compilation, pieces and original can get an id later only by a call of Inductor, which makes
        # one up: remembering it would be of no use.
        if owner.compile_id is not None or pieces or origin is not None:
            self._add(module, owner, piece)
        # ``split_module`` makes the pieces first, then the module that calls them: only now their names are known. A
        # module that calls pieces of another graph does not take them over.
        for name, child in pieces:
            known = self._of(child)
            if known is None or not known[1]:
                self._add(child, owner, name)

    def _add(self, module: torch.nn.Module, owner: _Owner, piece: str) -> None:
        key = id(module)
        # In C: what a signal handler raises in a function that the garbage collector calls is lost.
        self._known[key] = (weakref.ref(module, functools.partial(self._known.pop, key)), owner, piece)

    def _of(self, module: object) -> Optional[Tuple[_Owner, str]]:
        known = self._known.get(id(module))
        return None if module is None or known is None or known[0]() is not module else known[1:]

    def of(self, module: object, current: Optional[str]) -> Tuple[Optional[str], str]:
        """Return the compile id that work on this module belongs to, and the name of the piece. ``current`` is the id
        that the thread works for. The pieces of a graph without a Dynamo compilation share a made-up id.
        """
        known = self._of(module)
        if known is not None:
            owner, piece = known
            # The owner is one object for all pieces of a graph: they share the id that the first of them gets.
            if owner.compile_id is None:
                owner.compile_id = current or new_id()
            return owner.compile_id, piece
        # A graph that was captured before depyf's hooks were installed has its id from Dynamo (2.7 and later).
        captured = getattr(module, "meta", {}).get("dynamo_compile_id")
        return (None if captured is None else str(captured)), ""

    def begin(self, module: object, sizes: Optional[Tuple[str, str]]) -> str:
        """Name the compilation of this piece that starts now; empty for a whole graph.

        ``sizes`` is the name of a piece and the sizes that a backend compiles it for: ``submod_0[1-64]``. Where the
        sizes are not known, the second compilation is ``submod_0#2``.
        """
        owner, piece = self._of(module) or (None, "")
        if owner is None or not piece:
            return ""
        name = f"{piece}[{sizes[1]}]" if sizes is not None and sizes[0] == piece else piece
        number = owner.begun[name] = owner.begun.get(name, 0) + 1
        return f"{name}#{number}" if number > 1 else name


def new_id() -> str:
    return f"{STANDALONE}{next(_numbers)}"


def origin_of(maker: Optional[FrameType], root: object) -> Optional[object]:
    """Return the graph module that another was copied or made from; ``maker`` is the frame that makes it from
    ``root``.
    """
    # ``GraphModule.__deepcopy__`` passes a plain module with the attributes as ``root``.
    if maker is not None and maker.f_code.co_name in ("__deepcopy__", "__copy__"):
        return maker.f_locals.get("self")
    return root if hasattr(root, "print_readable") else None


def _sizes_of_a_piece(payload: object) -> Optional[Tuple[str, str]]:
    """Return the name of a piece and the sizes that a backend compiles it for (``1-64``); None if these are unknown."""
    try:
        data = json.loads(payload) if isinstance(payload, str) else None
    except synchronous(ValueError):
        data = None
    if not isinstance(data, dict):
        return None
    first, last = data.get("compile_range_start"), data.get("compile_range_end")
    if type(first) is not int or type(last) is not int:
        return None
    return str(data.get("submod_name")), str(first) if first == last else f"{first}-{last}"


def _pieces(module: torch.fx.GraphModule) -> Iterator[Tuple[str, torch.nn.Module]]:
    """Yield the graph modules that are called by a graph module, with their names."""
    called = {node.target for node in module.graph.nodes if node.op == "call_module"}
    for name, child in module.named_children() if called else ():
        if name in called and hasattr(child, "print_readable"):
            yield name, child


@dataclass
class _Work:
    """What a thread worked for before it started to work for another compilation, and when that was."""

    compile_id: Optional[str]
    piece: str
    compiling: bool
    ahead_of_time: bool
    started: float
    outermost: bool = True
    described: Mapping[str, object] = field(default_factory=dict)
    begun: bool = False

    @staticmethod
    def now() -> _Work:
        here = vars(_here)
        return _Work(
            here.get("compile_id"),
            here.get("piece", ""),
            here.get("compiling", False),
            here.get("ahead_of_time", False),
            time.time(),
        )

    def restore(self) -> None:
        """Restore what the thread worked for before. May be called again."""
        _here.compile_id, _here.piece = self.compile_id, self.piece
        _here.compiling, _here.ahead_of_time = self.compiling, self.ahead_of_time


class Ended(Protocol):
    """Called when Inductor returns."""

    def __call__(self, compile_id: str, *, outermost: bool) -> object: ...


class Attribution:
    """Records which compilation Inductor works for. ``begins`` is called with the id when Inductor is called; ``ends``
    when it returns, with the id and whether the compilation is complete; ``receive`` gets events.
    """

    def __init__(
        self,
        owners: GraphOwners,
        begins: Callable[[str], object],
        ends: Ended,
        receive: Callable[[Event], object],
    ) -> None:
        self._owners = owners
        self._begins = begins
        self._ends = ends
        self._receive = receive

    def watch(self) -> List[Undo]:
        """Start to attribute ahead-of-time compilations; return the functions that stop it."""
        ahead = private_names.AOT_COMPILE.find()
        return [] if ahead is None else [private_names.AOT_COMPILE.replace(self._ahead_of_time(ahead))]

    def watch_inductor(self) -> List[Undo]:
        """Start to attribute Inductor's compilations; return the functions that stop it."""
        compiler = private_names.COMPILE_FX.find()
        if compiler is None:
            return []
        return [replace_everywhere(private_names.COMPILE_FX.name, compiler, self._compiling(compiler))]

    def captured(self, compile_id: Optional[str]) -> None:
        """Record that Dynamo captured a graph on this thread: what ``aot_compile`` does with it belongs to that
        compilation.
        """
        if getattr(_here, "ahead_of_time", False) and getattr(_here, "compile_id", None) is None:
            _here.compile_id = compile_id

    def attributed(self, event: Event) -> Event:
        """Return the event with its compile id, if torch gives none. The event of a pass gets the name of the piece
        that is compiled now, since it may be repeated from a cache for another piece.
        """
        # vLLM reports the sizes just before it calls Inductor for the piece, on the same thread.
        if event.name == PIECE_STARTS:
            _here.sizes = _sizes_of_a_piece(event.payload)
        compile_id = event.compile_id or getattr(_here, "compile_id", None)
        meta = {"piece": current_piece()} if event.name == GRAPH_PASS else event.meta
        if compile_id == event.compile_id and meta is event.meta:
            return event
        return Event(event.name, compile_id, event.attempt, meta, event.payload, event.created, event.stack)

    def _compiling(self, original: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(original)
        def compile_fx(*args: object, **kwargs: object) -> object:
            work = _Work.now()
            failure: Optional[BaseException] = None
            try:
                try:
                    self._begin(work, args[0] if args else kwargs.get("model_"))
                    return original(*args, **kwargs)
                except BaseException as error:
                    failure = error
                    raise
                finally:
                    self._end(work, failure)
            except BaseException:
                work.restore()  # also where what is above was interrupted
                raise

        return compile_fx

    @safely("noting what Inductor compiles")
    def _begin(self, work: _Work, module: object) -> None:
        if work.compiling:  # it calls itself, with settings
            return
        # An id of the thread comes first: Dynamo compiles, or ``aot_compile``. Then the id of the graph that the module
        # is a piece of. ``outermost`` tells the hub that no Dynamo compilation will report the end.
        before = current_compile_id()
        owner, _ = self._owners.of(module, before)
        piece = self._owners.begin(module, vars(_here).pop("sizes", None))
        compile_id = before or owner or new_id()
        work.outermost = before is None
        if before is None and compile_id.startswith(STANDALONE):
            work.described = _described(type(module).__name__, None)
        self._begins(compile_id)
        _here.compile_id, _here.piece, _here.compiling = compile_id, piece, True
        work.begun = True

    @safely("noting what Inductor has compiled")
    def _end(self, work: _Work, failure: Optional[BaseException]) -> None:
        if not work.begun:
            return
        compile_id = _here.compile_id
        work.restore()
        # Without Dynamo there are no metrics: depyf sends them. A piece that is compiled later only reports its time;
        # the metrics of its compilation have been sent by Dynamo.
        if work.described:
            self._receive(_metrics(compile_id, work, failure))
        elif work.outermost:
            ended = time.time()
            duration = {"duration_us": int((ended - work.started) * 1e6)}
            self._receive(Event(LATER, compile_id, 0, duration, None, ended))
        self._ends(compile_id, outermost=work.outermost)

    def _ahead_of_time(self, original: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(original)
        def aot_compile_fullgraph(model: object, *args: object, **kwargs: object) -> object:
            work = _Work.now()
            failure: Optional[BaseException] = None
            try:
                try:
                    _here.ahead_of_time, _here.compile_id = True, None
                    return original(model, *args, **kwargs)
                except BaseException as error:
                    failure = error
                    raise
                finally:
                    self._end_ahead_of_time(model, work, failure)
            except BaseException:
                work.restore()
                raise

        return aot_compile_fullgraph

    @safely("noting what was compiled ahead of time")
    def _end_ahead_of_time(self, model: object, work: _Work, failure: Optional[BaseException]) -> None:
        compile_id = getattr(_here, "compile_id", None)
        work.restore()
        if compile_id is not None:
            work.described = _described("", _code_of(model))
            self._receive(_metrics(compile_id, work, failure))


def _metrics(compile_id: str, work: _Work, failure: Optional[BaseException]) -> Event:
    """Return what torch reports at the end of a Dynamo compilation, as far as it is known for this one."""
    ended = time.time()
    meta: Dict[str, object] = {
        **work.described,
        "start_time_us": int(work.started * 1e6),
        "duration_us": int((ended - work.started) * 1e6),
        "fail_type": None if failure is None else type(failure).__name__,
        "fail_reason": None if failure is None else str(failure),
        "has_guarded_code": failure is None,
    }
    return Event(FORWARD_METRICS, compile_id, 0, meta, None, ended)


def _described(name: str, code: Optional[CodeType]) -> Dict[str, object]:
    """Return the function that is compiled, as in torch's metrics. Without one, the caller of the compiler."""
    if code is not None:
        return {"co_name": code.co_name, "co_filename": code.co_filename, "co_firstlineno": code.co_firstlineno}
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and (known_code.is_of_torch(frame.f_code) or is_own(frame.f_code.co_filename)):
        frame = frame.f_back
    if frame is None:
        return {"co_name": name, "co_filename": "<unknown>", "co_firstlineno": 0}
    return {"co_name": name, "co_filename": frame.f_code.co_filename, "co_firstlineno": frame.f_lineno}


def _code_of(model: object) -> Optional[CodeType]:
    """Return the code of the argument of ``aot_compile``: a function, a method, a module."""
    function = getattr(model, "forward", model) if hasattr(model, "named_children") else model
    return getattr(getattr(function, "__func__", function), "__code__", None)
