"""List the operations of a call in their order, with the line and the module that each is called from.

A dispatch mode sees each operation that PyTorch runs, in eager code and in compiled graphs, forward and backward. It
takes time for each, so that the call whose operations are listed is not the call that is timed. The profiler has the
same operations in the same order: ``align.py`` puts the two together.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
import sysconfig
import threading
from types import CodeType, FrameType
from typing import Callable, ContextManager, Dict, List, Mapping, Optional, Set, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.own_package import is_own
from depyf.base.quick_dataclass import dataclass
from depyf.base.source_lines import source_line
from depyf.dynamo.hooks import known_code, private_names, torch_names
from depyf.dynamo.hooks.patching import Undo
from depyf.dynamo.hooks.pytree import leaves
from depyf.dynamo.hooks.safely import safely
from depyf.torch_trace import file_names
from depyf.torch_trace.provenance import node_in

_MOST_FRAMES = 200
_OF_PROFILER = "profiler::"
"""How the operations begin by which the profiler makes spans."""
_INTERPRETER = os.path.join("torch", "fx", "interpreter.py")
"""Runs the nodes of a graph one by one: backends of older PyTorch do."""
_GRAPH_CODE = "<eval_with_key>"
"""How the file of the code of a graph module begins."""


@dataclass(frozen=True)
class Site:
    """Where an operation is called from: ``file`` and ``line``.

    ``node`` is the graph node, where that is the code of a graph module; ``generated`` says that it is a module of
    Inductor's, ``dumped`` that it is a file of a dump. ``module`` and ``type`` are the path and the class of the
    innermost ``torch.nn.Module`` that runs. ``caller`` is the line of the program that calls a graph.
    """

    file: str
    line: int
    node: str = ""
    module: str = ""
    type: str = ""
    generated: bool = False
    dumped: bool = False
    caller: Optional[Tuple[str, int]] = None


@dataclass
class Listed:
    """One operation: its name as the profiler has it, where it is called, bytes and floating point operations."""

    name: str
    site: Optional[Site]
    bytes: int = 0
    operations: int = 0


def require_listing() -> None:
    """Raise ``RuntimeError`` with a PyTorch whose guards fail while a dispatch mode is on: each call would compile."""
    if private_names.MODES_IN_GUARDS.find() is None:
        raise RuntimeError(
            "depyf.profile needs PyTorch 2.13 or later: with older ones compiled code is compiled anew while its "
            "operations are listed"
        )


class Listing:
    """The operations of each thread, in order, while it is open."""

    def __init__(self, generated: Callable[[str], bool], around: Callable[[int], ContextManager[object]]) -> None:
        self._generated = generated
        """Whether a file is a module that Inductor generated."""
        self._around = around
        """Returns a context for an operation that is numbered, so that the profiler has it, too."""
        self.threads: Dict[int, List[Listed]] = {}
        self.numbered: Dict[int, Listed] = {}
        self._numbers = itertools.count()
        self._codes: Dict[int, Tuple[CodeType, str]] = {}
        self._names: Dict[int, str] = {}
        """The path of each module, by its id."""
        self._roots: Set[int] = set()

    def clear(self) -> None:
        """Forget what was listed: something was compiled meanwhile, whose operations are in it."""
        self.threads.clear()
        self.numbered.clear()

    def open(self) -> Undo:
        """Start to list; return the function that ends it."""
        mode = _mode_of(self._run)
        mode.__enter__()
        thread = threading.get_ident()

        def close() -> None:
            if threading.get_ident() == thread and any(each is mode for each in private_names.DISPATCH_MODES.find()()):
                mode.__exit__(None, None, None)

        return close

    def name_modules(self, root: object, path: str = "") -> None:
        """Learn the names of the modules in ``root``."""
        for name, module in root.named_modules(prefix=path):  # type: ignore[attr-defined]
            self._names.setdefault(id(module), name)

    def add_kernel(self, name: str, given: object) -> None:
        """List a kernel that is called with ``given``."""
        site = safely("looking where a kernel is called")(self._site)(sys._getframe(2))
        self._add(Listed(name, site, _bytes_of(given)))

    def _add(self, listed: Listed) -> int:
        number = next(self._numbers)
        self.numbered[number] = listed
        self.threads.setdefault(threading.get_ident(), []).append(listed)
        return number

    def _run(self, operator: Callable[..., object], args: Tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        schema = private_names.SCHEMA.of(operator)
        name = str(operator) if schema is None else str(schema.name)
        if name.startswith(_OF_PROFILER):
            return operator(*args, **kwargs)
        site = safely("looking where an operation is called")(self._site)(sys._getframe(2))
        listed = Listed(name, site)
        number = self._add(listed)
        with self._around(number):
            result = operator(*args, **kwargs)
        # A view moves nothing: its result is the memory of an operand.
        returned = () if schema is None else schema.returns
        is_view = any(each.alias_info is not None and not each.alias_info.is_write for each in returned)
        listed.bytes = 0 if is_view else _bytes_of((args, kwargs, result))
        listed.operations = _operations(operator, args, kwargs, result)
        return result

    def _site(self, start: Optional[FrameType]) -> Optional[Site]:
        """Return the innermost frame that is of a compiled graph or of the program, with the module that runs there."""
        frame, found = start, None
        for _ in range(_MOST_FRAMES):
            if frame is None:
                break
            kind = self._kind_of(frame.f_code)
            if kind and found is None:
                line = frame.f_lineno
                if kind == "interpreter":
                    node = str(getattr(frame.f_locals.get("n"), "name", ""))
                    return Site(frame.f_code.co_filename, line, node, caller=self._program_line(frame))
                if kind == "graph":
                    node = node_in(f"    {source_line(frame.f_code.co_filename, line)}") or ""
                    return Site(frame.f_code.co_filename, line, node, caller=self._program_line(frame))
                if kind == "generated":
                    return Site(frame.f_code.co_filename, line, generated=True, caller=self._program_line(frame))
                if kind == "dumped":
                    return Site(frame.f_code.co_filename, line, dumped=True, caller=self._program_line(frame))
                found = frame.f_code.co_filename, line
            # The innermost module: a module of torch's own (Linear) has no line of the program, the line calls it.
            module = _module_of(frame)
            if module is not None:
                return self._in_module(frame, module, found)
            frame = frame.f_back
        return None if found is None else Site(*found)

    def _program_line(self, frame: Optional[FrameType]) -> Optional[Tuple[str, int]]:
        while frame is not None:
            if self._kind_of(frame.f_code) == "program":
                return frame.f_code.co_filename, frame.f_lineno
            frame = frame.f_back
        return None

    def _in_module(self, frame: FrameType, module: object, found: Optional[Tuple[str, int]]) -> Optional[Site]:
        above: Optional[FrameType] = frame
        outermost = module
        while above is not None:
            kind = self._kind_of(above.f_code)
            if found is None and kind == "program":
                found = above.f_code.co_filename, above.f_lineno
            around = _module_of(above)
            outermost = outermost if around is None else around
            above = above.f_back
        if id(module) not in self._names and id(outermost) not in self._roots:
            self._roots.add(id(outermost))
            self.name_modules(outermost)
        return None if found is None else Site(*found, "", self._names.get(id(module), ""), type(module).__name__)

    def _kind_of(self, code: CodeType) -> str:
        known = self._codes.get(id(code))
        if known is None:
            path = code.co_filename
            if path.startswith(_GRAPH_CODE):
                kind = "graph"
            elif code.co_name == "run_node" and path.endswith(_INTERPRETER):
                kind = "interpreter"
            elif self._generated(path):
                kind = "generated"
            elif file_names.is_dumped_code(os.path.basename(path)):
                kind = "dumped"
            elif path.startswith("<") and not path.startswith("<ipython"):
                kind = ""
            else:
                kind = "" if is_own(path) or known_code.is_of_torch(code) or _is_standard(path) else "program"
            known = self._codes[id(code)] = code, kind
        return known[1]


def _module_of(frame: FrameType) -> Optional[object]:
    """Return the module whose ``forward`` a frame runs."""
    code = frame.f_code
    if code.co_name != "forward" or not code.co_argcount:
        return None
    owner: object = frame.f_locals.get(code.co_varnames[0])
    return owner if isinstance(owner, torch_names.module("torch").nn.Module) else None


@functools.lru_cache(maxsize=None)
def _is_standard(path: str) -> bool:
    """Return whether a file is of the standard library; ``contextlib`` calls functions of the program."""
    return path.startswith(sysconfig.get_paths()["stdlib"] + os.sep) and "site-packages" not in path


def _bytes_of(values: object) -> int:
    """Return the size of all tensors in ``values``, each once."""
    tensor = torch_names.module("torch").Tensor
    found = {id(each): each for each in leaves(values) if isinstance(each, tensor)}
    total = 0
    for each in found.values():
        try:
            total += each.numel() * each.element_size()
        except synchronous(RuntimeError, NotImplementedError, TypeError):  # symbolic, or of a kind without a size
            continue
    return total


def _operations(operator: object, args: Tuple[object, ...], kwargs: Mapping[str, object], result: object) -> int:
    """Return the floating point operations by PyTorch's formulas, 0 for an operator without one."""
    from torch.utils import flop_counter

    formula = flop_counter.flop_registry.get(getattr(operator, "overloadpacket", None))
    if formula is None:
        return 0
    try:
        return int(formula(*args, **{k: v for k, v in kwargs.items() if k != "out"}, out_val=result))
    except synchronous():  # the formula is for other arguments
        return 0


_Run = Callable[[Callable[..., object], Tuple[object, ...], Mapping[str, object]], object]


def _mode_of(run: _Run) -> ContextManager[object]:
    """Return a dispatch mode that calls ``run`` in place of each operator."""

    def dispatch(
        self: object,
        operator: Callable[..., object],
        types: object,
        args: Tuple[object, ...] = (),
        kwargs: Optional[Mapping[str, object]] = None,
    ) -> object:
        return run(operator, args, kwargs or {})

    # The answers about the mode are functions of C: torch asks for them while it enters the mode, and a signal handler
    # may raise where Python runs. Without them Dynamo compiles nothing while the mode is on.
    yes = staticmethod(functools.partial(bool, True))
    namespace = {
        "supports_higher_order_operators": True,
        "is_infra_mode": yes,
        "ignore_compile_internals": yes,
        "__torch_dispatch__": dispatch,
    }
    mode: ContextManager[object] = type("ListingMode", (private_names.DISPATCH_MODE.require(),), namespace)()
    return mode
