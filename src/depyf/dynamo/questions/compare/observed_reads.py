"""Observe which values a run in eager mode reads by name: arguments, variables, globals, and attributes and items
reached from these. The frames of the run show where it starts; the decompiled code of each shows the names.
"""

from __future__ import annotations

import ast
import contextlib
import dis
import functools
import inspect
import sys
from types import CodeType, FrameType, MemberDescriptorType, ModuleType
from typing import Dict, Iterator, List, Mapping, Optional, Protocol, Set, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.base.source_lines import source_line
from depyf.decompiler import DecompilationError, decompile_code
from depyf.dynamo.capture.fallbacks import is_users_file
from depyf.dynamo.entries.callables import module_classes
from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.nested_code import qualified_name

ABSENT = object()

ARGUMENT, CELL, GLOBAL, ATTRIBUTE, ITEM = "argument", "cell", "global", "attribute", "item"

_MOST_FRAMES, _MOST_READS = 2000, 4000

_Step = Tuple[str, object]
"""An attribute or an item: its kind and its name or key."""

_Chain = Tuple[str, Tuple[_Step, ...], str, int]
"""The name that a chain starts with, its steps, its text, and its line in the original code."""


class StartedFrame(Protocol):
    """A frame, or what has its code and variables."""

    @property
    def f_code(self) -> CodeType: ...

    @property
    def f_locals(self) -> Mapping[str, object]: ...

    @property
    def f_globals(self) -> Mapping[str, object]: ...


@dataclass(frozen=True)
class Read:
    """A value that was read: ``text`` as the code writes it, in ``function`` at ``place``.

    ``owner`` holds it: an object, a container, the globals of a frame; None for arguments and variables of the function
    that is compiled. ``name`` is the name, attribute, key or index. ``own`` is whether that function reads it.
    """

    kind: str
    text: str
    owner: object
    name: object
    value: object
    function: str
    place: Tuple[str, int]
    own: bool = False

    @property
    def line(self) -> str:
        """The line of code."""
        return source_line(*self.place)


_HOOKS = (
    (private_names.FORWARD_HOOKS, "forward hooks"),
    (private_names.FORWARD_PRE_HOOKS, "forward pre-hooks"),
    (private_names.BACKWARD_HOOKS, "backward hooks"),
)
HOOKS = frozenset(hooks.name for hooks, _ in _HOOKS)
"""The attributes of a module that hold its hooks."""


class ReadObserver:
    """Collects the reads of the frames that run while it is installed; ``code`` is the one that is compiled."""

    def __init__(self, code: CodeType) -> None:
        self._code = code
        self._seen: Set[Tuple[int, object, str]] = set()
        self._frames = 0
        self.reads: List[Read] = []

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        before = sys.getprofile()

        def note(frame: FrameType, event: str, _: object) -> None:
            if event == "call":
                self.enter(frame)

        sys.setprofile(note)
        try:
            yield
        finally:
            sys.setprofile(before)

    def enter(self, frame: StartedFrame) -> None:
        """Add what the code of a frame that starts reads."""
        code = frame.f_code
        if self._frames >= _MOST_FRAMES or len(self.reads) >= _MOST_READS:
            return
        of_module = isinstance(frame.f_locals.get("self"), module_classes())
        if of_module and code is getattr(private_names.CALL_OF_MODULE.find(), "__code__", None):
            self._module(frame.f_locals["self"])
        elif is_users_file(code.co_filename) or (of_module and code.co_name == "forward"):
            self._frames += 1
            try:
                for chain in known_chains(code):
                    self._follow(frame, *chain)
            except synchronous():  # the program's objects may raise anything: what they hide is not named
                return

    def _module(self, module: object) -> None:
        """Add what torch's code for a call of a module reads: its hooks, and ``forward`` of its class."""
        name, cls = type(module).__qualname__, type(module)
        place = (inspect.getsourcefile(cls) or "", 0) if isinstance(cls, type) else ("", 0)
        for hooks, what in _HOOKS:
            found = hooks.of(module)
            if found:
                self._add(Read(ATTRIBUTE, f"the {what} of {name}", module, hooks.name, found, "a call of it", place))
        own = next((each for each in cls.__mro__ if "forward" in vars(each)), None)
        if own is not None and "forward" not in vars(module):
            text = f"{own.__qualname__}.forward"
            self._add(Read(ATTRIBUTE, text, own, "forward", vars(own)["forward"], f"a call of {name}", place))

    def _follow(self, frame: StartedFrame, root: str, steps: Tuple[_Step, ...], text: str, line: int) -> None:
        """Add each value along a chain, such as ``s`` and ``s.now`` of ``s.now.k``."""
        code, own = frame.f_code, frame.f_code == self._code
        function, place = qualified_name(code), (code.co_filename, line)
        if root in code.co_freevars:
            kind, owner, value = CELL, None, frame.f_locals.get(root, ABSENT)
        elif root in code.co_varnames:
            kind, owner, value = ARGUMENT, None, frame.f_locals.get(root, ABSENT)
        else:
            kind, owner, value = GLOBAL, frame.f_globals, frame.f_globals.get(root, ABSENT)
        if value is ABSENT:
            return
        if own or kind == GLOBAL:
            self._add(Read(kind, root, owner, root, value, function, place, own))
        parts = text.split("\0")
        for number, (kind, name) in enumerate(steps):
            holder, value = value, attribute(value, name) if kind == ATTRIBUTE else item(value, name)
            if value is ABSENT:
                return
            self._add(Read(kind, "".join(parts[: number + 2]), holder, name, value, function, place, own))

    def _add(self, read: Read) -> None:
        key = (id(read.owner), read.name if read.kind != ITEM else repr(read.name), read.kind)
        if key not in self._seen:
            self._seen.add(key)
            self.reads.append(read)


def attribute(owner: object, name: object) -> object:
    """Return an attribute without running code of the program; ``ABSENT`` if that is not possible."""
    if not isinstance(name, str):
        return ABSENT
    if isinstance(owner, (ModuleType, type)):
        return inspect.getattr_static(owner, name, ABSENT)
    namespace = getattr(owner, "__dict__", {})
    if name in namespace:
        return namespace[name]
    for registry in registries(owner):
        if name in registry:
            return registry[name]
    found = inspect.getattr_static(type(owner), name, ABSENT)
    if isinstance(found, MemberDescriptorType):  # of __slots__
        return getattr(owner, name, ABSENT)
    return ABSENT if isinstance(found, property) else found


def registries(owner: object) -> List[Mapping[str, object]]:
    """Return where a module has its parameters, buffers and submodules."""
    if not isinstance(owner, module_classes()):
        return []
    names = (private_names.PARAMETERS, private_names.BUFFERS, private_names.MODULES)
    return [each.of(owner) for each in names]


def item(owner: object, key: object) -> object:
    """Return an item of a list, tuple or dict of these very classes; ``ABSENT`` for others."""
    if type(owner) in (list, tuple) and isinstance(key, int):
        return owner[key] if -len(owner) <= key < len(owner) else ABSENT  # type: ignore[index,arg-type]
    return owner.get(key, ABSENT) if type(owner) is dict else ABSENT


@functools.lru_cache(maxsize=_MOST_FRAMES)
def known_chains(code: CodeType) -> Tuple[_Chain, ...]:
    """Return what ``chains_of`` yields. Decompiling takes longer than everything else."""
    return tuple(chains_of(code))


def chains_of(code: CodeType) -> Iterator[_Chain]:
    """Yield the names in the code, each with the attributes and constant items that are read from it."""
    try:
        found = decompile_code(code)
    except DecompilationError:
        return
    starts = sorted((offset, line or code.co_firstlineno) for offset, line in dis.findlinestarts(code))
    lines: Dict[int, int] = {}
    for line, offsets in found.line_map.offsets.items():
        before = [original for offset, original in starts if offset <= offsets[0]]
        lines[line] = before[-1] if before else code.co_firstlineno
    known: Dict[str, Tuple[str, Tuple[_Step, ...], str]] = {}
    """Local variables that are assigned once, and from what."""
    assigned = [node for node in ast.walk(found.tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    once = {node.id for node in assigned if sum(node.id == other.id for other in assigned) == 1}
    for node in ast.walk(found.tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            chain = _chain(node.value, known)
            if chain is not None and node.targets[0].id in once:
                known[node.targets[0].id] = chain
    for node in ast.walk(found.tree):
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load):
            chain = _chain(node, known)
            if chain is not None:
                yield (*chain, lines.get(node.lineno, code.co_firstlineno))


def _chain(
    node: ast.expr, known: Mapping[str, Tuple[str, Tuple[_Step, ...], str]]
) -> Optional[Tuple[str, Tuple[_Step, ...], str]]:
    """Return the name, steps and text (in parts, one for each step) of an expression; None for others."""
    if isinstance(node, ast.Name):
        return known.get(node.id, (node.id, (), node.id))
    if isinstance(node, ast.Attribute):
        inner = _chain(node.value, known)
        return inner and (inner[0], (*inner[1], (ATTRIBUTE, node.attr)), f"{inner[2]}\0.{node.attr}")
    if isinstance(node, ast.Subscript):
        index: ast.AST = node.slice
        index = getattr(index, "value", index) if type(index).__name__ == "Index" else index  # up to 3.8
        key = index.value if isinstance(index, ast.Constant) else ABSENT
        inner = _chain(node.value, known)
        if inner is not None and isinstance(key, (int, str)):
            return inner[0], (*inner[1], (ITEM, key)), f"{inner[2]}\0[{key!r}]"
    return None
