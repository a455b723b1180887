"""The guards of a cache entry as a Python function that can be read and called.

``EntryGuards.of`` renders them. The result can be evaluated at once, or written into a file whose functions agree with
PyTorch when the file is imported in the process that compiled (see ``guards_live`` for how, and for elsewhere).
"""

from __future__ import annotations

import ast
from dataclasses import field
from types import CodeType
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Set, Tuple, Union

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass, replace
from depyf.decompiler.syntax import parse
from depyf.diagnosis.guard import NO_GUARD, Guard, GuardKind
from depyf.diagnosis.guard_sources import local_name
from depyf.diagnosis.guard_text import read
from depyf.dynamo.guards import runtime as guard_runtime
from depyf.dynamo.guards.kept_readings import OfGuards
from depyf.dynamo.guards.live_values import LiveGuard, LiveTable, NotLiveError
from depyf.dynamo.guards.stable_expressions import Naming
from depyf.dynamo.guards.to_python import attribute_read, convert, convert_structure
from depyf.dynamo.guards.tree import ACCESS, DICT_MANAGER, EPILOGUE, Check, checks_of, form_of
from depyf.dynamo.hooks.torch_types import Guards

RUNTIME = "depyf.dynamo.guards.runtime"
_IMPORTED_MODULES = {"torch": "import torch", "np": "import numpy as np", "math": "import math"}
_OF_MODULES = ("._modules", "._parameters", "._buffers")
"""PyTorch keeps these dictionaries, and has a check of their class and length that each entry has for itself."""

_LEAST_IN_COMMON = 4
"""A function of its own is shorter to read for at least so many guards."""

Checked = Dict[str, bool]
"""Whether conditions hold for the values of one call in one frame, by what they say (``Compiled.keys``)."""

_DEFINED_IN_FILE = frozenset({"L", "G", "___ids", "___names", "___live"})


@dataclass(frozen=True)
class GuardLine:
    """One guard. ``kind`` is PyTorch's class of guard, ``source`` what it reads, ``code`` PyTorch's own text.

    ``expression`` is the Python that checks the same, ``user_line`` the line of the user that caused it, ``guard`` the
    facts in its text. ``live`` is true when there is no Python for it: the expression then calls PyTorch's own guard.
    ``path`` is what that needs.
    """

    kind: str
    source: str
    code: str
    expression: str
    user_line: str
    live: bool = False
    why_live: str = "not expressible"
    path: FrozenSet[str] = field(default=frozenset(), repr=False)
    guard: Guard = field(default=NO_GUARD, repr=False)

    @property
    def is_of_the_environment(self) -> bool:
        """Whether it reads the state of the process alone, and no variable of the program."""
        return not self.live and "L[" not in self.expression and "G[" not in self.expression


@dataclass(frozen=True)
class Compiled:
    """The conditions of ``lines``, in this order, and the names that they read besides the call's values and the table
    of live guards, which a condition of a live guard needs.

    ``keys``: what the conditions say, ids included; None for a live guard, which each entry has for itself.
    """

    lines: Tuple[GuardLine, ...]
    conditions: Sequence[Union[CodeType, str]]
    names: Dict[str, object]
    keys: Sequence[Optional[str]]


@dataclass(frozen=True)
class EntryGuards:
    """The guards of one cache entry, as lines of the function ``name`` and as PyTorch's own (held weakly).

    ``common`` are functions of the file that check lines which other entries have too: the expressions ``elsewhere``.
    """

    name: str
    lines: Tuple[GuardLine, ...]
    naming: Naming = field(repr=False)
    live: LiveGuard = field(repr=False)
    common: Tuple[str, ...] = ()
    elsewhere: FrozenSet[str] = field(default=frozenset(), repr=False)
    compiled: List[Compiled] = field(default_factory=list, repr=False)
    """What ``failing`` evaluates, from its first call. Copies of this object share the list."""

    @staticmethod
    def of(manager: Guards, name: str, naming: Optional[Naming] = None) -> EntryGuards:
        """Render the guards of ``cache_entry.guard_manager``; functions of one file share a ``naming``. Without one,
        names stay as they are, and the lines are kept while the guards are alive and as they were.
        """
        if naming is None:
            return _plain(manager, name)
        lines: List[GuardLine] = []
        known: Set[str] = set()
        invalidated = getattr(manager, "invalidation_reason", None)
        if invalidated is not None:
            # The object in place of its guards checks nothing, and PyTorch never calls it.
            lines.append(
                GuardLine("INVALIDATED", "", naming.stable(str(invalidated)), "False", naming.stable(str(invalidated)))
            )
        # Several checks may have the same expression, such as a relation of two values: it is evaluated once.
        for check in checks_of(manager) if invalidated is None else ():
            for line in (
                _without_values(each, check, name, naming) for each in _lines_of(check, name, naming, manager)
            ):
                if line.expression not in known:
                    known.add(line.expression)
                    lines.append(line)
        return EntryGuards(name, tuple(lines), naming, LiveGuard(manager))

    @property
    def own_lines(self) -> List[GuardLine]:
        """The lines that no other function of the file checks."""
        return [line for line in self.lines if line.expression not in self.elsewhere]

    def source(self) -> str:
        """Return the text of the guard function. It needs ``header`` before it."""
        # Nearly every tensor has a guard that no dimension of it is marked, which says no more than that: all are one.
        lines = self.own_lines
        unmarked = {number: read for number, read in enumerate(map(_unmarked, lines)) if read is not None}
        together = unmarked if len(unmarked) > 2 else {}
        conditions = [f"{name}(L, G)" for name in self.common]
        conditions += [_condition(line) for number, line in enumerate(lines) if number not in together]
        if together:
            tensors = ", ".join(together.values())
            conditions.append(f"all(map(___check_dimension_marks, ({tensors})))  # {len(together)} tensors")
        text = "\n        and ".join(conditions or ["True  # no guards at all"])
        return f"@___guard\ndef {self.name}(L, G, **___kwargs_ignored):\n    return (\n        {text}\n    )\n"

    def table(self) -> LiveTable:
        """Return what a file that holds only this function needs at run time."""
        return live_table_of([self], self.naming)

    def evaluate(
        self, frame_locals: Mapping[str, object], frame_globals: Optional[Mapping[str, object]] = None
    ) -> bool:
        """Return whether all guards pass for these arguments and free variables (by name), under the current global
        state.
        """
        return self.function()(frame_locals, self._globals(frame_globals))

    def failing(
        self,
        frame_locals: Mapping[str, object],
        frame_globals: Optional[Mapping[str, object]] = None,
        known: Optional[Checked] = None,
    ) -> List[GuardLine]:
        """Return every guard that fails, also those that PyTorch would not have reached. ``known``: what guards of
        other entries have given for these very values.
        """
        scope = self._globals(frame_globals)
        compiled = self._compiled()
        names: Dict[str, object] = {}
        known = {} if known is None else known
        failing: List[GuardLine] = []
        for line, condition, key in zip(self.lines, compiled.conditions, compiled.keys):
            holds = None if key is None else known.get(key)
            if holds is None:
                names = names or {**compiled.names, "___live": self.table(), "L": frame_locals, "G": scope}
                holds = _holds(condition, names)
                if key is not None:
                    known[key] = holds
            if not holds:
                failing.append(line)
        return failing

    def _compiled(self) -> Compiled:
        known = next((each for each in self.compiled if each.lines is self.lines), None)
        if known is None:
            conditions = [_code_of(line) for line in self.lines]
            names = namespace([self], self.table())
            del names["___live"]  # a table refers to one object's copies of the guards, and this is kept longer
            # Names of ids are those of one entry: ``___ids['a.B']`` may be another class in the next one.
            of_entry = repr((self.naming.ids, self.naming.names))
            keys = [
                None if line.live else line.expression + (of_entry if "___" in line.expression else "")
                for line in self.lines
            ]
            known = Compiled(self.lines, conditions, names, keys)
            self.compiled.append(known)
        return known

    def function(self) -> Callable[[Mapping[str, object], Mapping[str, object]], bool]:
        """Return the guard function itself, with the live objects bound."""
        names = namespace([self], self.table())
        exec(compile(self.source(), f"<{self.name}>", "exec"), names)
        function: Callable[[Mapping[str, object], Mapping[str, object]], bool] = names[self.name]
        return function

    def _globals(self, frame_globals: Optional[Mapping[str, object]]) -> Mapping[str, object]:
        if frame_globals is not None:
            return frame_globals
        scope = self.live.global_scope()
        if scope is None:
            raise NotLiveError(f"the cache entry of {self.name} is gone: the globals that its guards read are unknown")
        return scope


def with_common_once(
    entries: Mapping[str, EntryGuards], functions: Sequence[Tuple[str, Sequence[str]]]
) -> Tuple[Dict[str, EntryGuards], List[EntryGuards]]:
    """Return the guards with those that several entries have in common in functions of their own, and these functions.

    ``functions`` are the functions of a file: the name, and the keys of its entries. Guards on the state of the process
    are common to entries of all functions; what the entries of one function have in common leaves what differs.
    """
    found = dict(entries)
    made: List[EntryGuards] = []

    def share(name: str, keys: Sequence[str], least: int, *, environment: bool = False) -> None:
        # What is common is checked first. So what reads a value stays with the checks of that value that the entries do
        # not share, of its class above all: reading a key of another class may run its code.
        common = set.intersection(*({line.expression for line in found[key].own_lines} for key in keys))
        lines = tuple(line for line in found[keys[0]].own_lines if line.expression in common)
        apart = {line.source for key in keys for line in found[key].own_lines if line.expression not in common}
        apart = {source for source in apart if source and not source.endswith(_OF_MODULES)}
        lines = tuple(line for line in lines if not any(source in line.expression for source in apart))
        lines = tuple(line for line in lines if line.is_of_the_environment or not environment)
        if len(lines) < least or any(each.name == name for each in made):  # two functions of one name share nothing
            return
        made.append(replace(entries[keys[0]], name=name, lines=lines))
        for key in keys:
            guards = found[key]
            elsewhere = guards.elsewhere | {line.expression for line in lines}
            found[key] = replace(guards, common=(*guards.common, name), elsewhere=elsewhere)

    states: Dict[Tuple[str, ...], List[str]] = {}
    for key, guards in entries.items():
        state = tuple(line.expression for line in guards.lines if line.is_of_the_environment)
        states.setdefault(state, []).append(key)
    for number, keys in enumerate(states.values()):
        if len(keys) > 1:
            share(f"__guard_of_the_environment_{number}", keys, 2, environment=True)
    for name, of_function in functions:
        keys = [key for key in dict.fromkeys(of_function) if key in found]
        if len(keys) > 1:
            share(f"__guard_in_common_for_{name}", keys, _LEAST_IN_COMMON)
    return found, made


def _condition(line: GuardLine) -> str:
    """Return the expression of a guard with its comment."""
    notes = [f"{line.why_live}, asks PyTorch: {line.code}"] if line.live else []
    notes += [line.user_line] if line.user_line else []
    comment = "  # " + " | ".join(notes) if notes else ""
    return f"{line.expression}{one_line(comment)}"


def _unmarked(line: GuardLine) -> Optional[str]:
    """Return what the guard reads, if the guard is that no dimension of the tensor is marked; None for others."""
    start, end = "___check_dimension_marks(", ")"
    if line.live or not line.expression.startswith(start):
        return None
    if "=" not in line.expression:  # then there is no keyword
        return line.expression[len(start) : -len(end)]
    (statement,) = parse(line.expression).body
    call = statement.value if isinstance(statement, ast.Expr) else None
    return line.expression[len(start) : -len(end)] if isinstance(call, ast.Call) and not call.keywords else None


def _code_of(line: GuardLine) -> Union[CodeType, str]:
    """Return the condition of a guard as compiled code, as text if it does not compile: such a guard fails."""
    try:
        return compile(line.expression, f"<{line.kind}>", "eval")
    except synchronous(SyntaxError, ValueError, RecursionError, MemoryError):
        return line.expression


_holds: Callable[[Union[CodeType, str], Dict[str, object]], bool] = guard_runtime.___guard(eval)
"""Return whether a condition holds for these names."""


_read: OfGuards[EntryGuards] = OfGuards()


def _plain(manager: Guards, name: str) -> EntryGuards:
    """Return the guards with the names as they are, without a second reading of the same guards."""
    form = form_of(manager)
    known = _read.of(manager, form)
    if known is None or known.name != name:
        known = EntryGuards.of(manager, name, Naming(lambda text: text))
        # PyTorch gives the length of a dict (``_dict_length``) only in the global state that the guards were made in:
        # guards that were read in another state are read again.
        if not any(line.kind == DICT_MANAGER and line.live and local_name(line.source) for line in known.lines):
            _read.keep(manager, form, known)
    # The copy has a reference to the guards of its own, and their partial clones with it.
    return replace(known, live=LiveGuard(manager))


def one_line(comment: str) -> str:
    """Return a comment on one line."""
    return " ".join(comment.splitlines())


def _lines_of(check: Check, name: str, naming: Naming, manager: Guards) -> List[GuardLine]:
    # An expression for the whole check, where PyTorch's text has too little: modes, accessors, dict managers, marks.
    if check.kind == "TORCH_FUNCTION_MODE_STACK":
        structural = _mode_stack(manager, naming)
    else:
        structural = convert_structure(check, naming)
    if structural is not None:
        has_text = check.kind not in (ACCESS, DICT_MANAGER)
        guard = _of_known_class(read(check.parts[0]), check) if has_text else _without_text(check)
        return [_line(check, guard, structural, naming)]
    if check.kind in (ACCESS, DICT_MANAGER):
        guards = [_without_text(check)]
    else:
        guards = [_of_known_class(read(part), check) for part in check.parts]
    # Otherwise one line for each part of the text. If one part has no Python form, PyTorch checks all parts.
    lines = []
    for guard in guards:
        expression = convert(check, guard, naming)
        if expression is None:
            return [_live_line(check, name, guard, naming)]
        lines.append(_line(check, guard, expression, naming))
    unknown = Guard(GuardKind.UNKNOWN, check.source, code=f"{check.kind} of {check.source}")
    return lines or [_live_line(check, name, unknown, naming)]


def _of_known_class(guard: Guard, check: Check) -> Guard:
    """Return the guard with the name of its class, which the text of PyTorch 2.9 and older gives as an id only."""
    known = check.value_type
    if known is None or guard.kind is not GuardKind.CLASS or guard.expected or guard.identity != id(known):
        return guard
    return replace(guard, expected=guard_runtime._class_name(known))


def _without_text(check: Check) -> Guard:
    """Return the guard of a check that has no text of its own."""
    if check.kind == ACCESS:
        attribute, code = attribute_read(check), check.parts[0]
        if attribute is not None:
            return Guard(GuardKind.ATTRIBUTE, check.source, detail=attribute, code=code)
        return Guard(GuardKind.MISSING, check.source, code=code)
    length = None if check.length is None else str(check.length)
    code = f"class and length of {check.source}" if length is None else ""
    return Guard(GuardKind.NUMBER_OF_KEYS, check.source, length, code=code)


def _line(check: Check, guard: Guard, expression: str, naming: Naming) -> GuardLine:
    code, user_line = naming.stable(guard.code), naming.stable(guard.user_line)
    return GuardLine(check.kind, check.source, code, expression, user_line, guard=guard)


def _live_line(check: Check, name: str, guard: Guard, naming: Naming) -> GuardLine:
    """Return a guard that has no Python form: its expression calls PyTorch's check of this value, or of all values."""
    whole = check.source == EPILOGUE
    label = "" if whole else f", {_label(check.source, naming)!r}"
    line = _line(check, guard, f"___live.guard({name!r}{label})(L)", naming)
    return replace(line, live=True, path=check.path)


def _label(source: str, naming: Naming) -> str:
    """Return the name that a file of guards has for a value that PyTorch checks."""
    label = naming.stable(source or "global state")
    return label if naming.hide is None else naming.hide(label)


def _without_values(line: GuardLine, check: Check, name: str, naming: Naming) -> GuardLine:
    """Return the line; where its expression has values that are not to be shown, a line that asks PyTorch."""
    if naming.hide is None:
        return line
    code = naming.hide(line.code)
    if line.live or naming.hide(line.expression) == line.expression:
        return replace(line, code=code)
    return replace(_live_line(check, name, line.guard, naming), code=code, why_live="value not shown")


def _mode_stack(manager: Guards, naming: Naming) -> Optional[str]:
    """Return the expression for the stack of torch function modes; the classes are in PyTorch's closure."""
    # ``check_torch_function_mode_stack`` closes over ``types``; the text of the guard does not name them.
    checker: Any = (getattr(manager, "closure_vars", None) or {}).get("___check_torch_function_mode_stack")
    code = getattr(checker, "__code__", None)
    if checker is None or code is None or "types" not in code.co_freevars:
        return None
    types = checker.__closure__[code.co_freevars.index("types")].cell_contents
    ids = [naming.id_of(guard_runtime._class_name(each), id(each)) for each in types]
    naming.used.add("___check_torch_function_modes")
    return f"___check_torch_function_modes({', '.join(ids)})"


def live_table_of(
    entries: Sequence[EntryGuards],
    naming: Naming,
    codes: Optional[Mapping[str, CodeType]] = None,
    constants: Optional[Mapping[str, Tuple[CodeType, Tuple[int, ...]]]] = None,
) -> LiveTable:
    """Return what a file with all these guard functions, rendered with ``naming``, needs at run time.

    ``codes`` are code objects that the file runs unchanged, by the name of the function that runs them; ``constants``
    locates, in code objects, the objects that the file has names for.
    """
    paths: Dict[Tuple[str, str], Tuple[str, FrozenSet[str]]] = {}
    for entry in entries:
        for line in entry.lines:
            if line.live and line.source != EPILOGUE:
                label = _label(line.source, entry.naming)
                known = paths.get((entry.name, label), ("", frozenset()))[1]
                paths[entry.name, label] = line.source, line.path | known
    return LiveTable(naming.ids, naming.names, {entry.name: entry.live for entry in entries}, paths, codes, constants)


def header(entries: Sequence[EntryGuards]) -> str:
    """Return the imports and tables that must precede the guard functions of a file."""
    used = names_used(entries)
    modules = [text for name, text in _IMPORTED_MODULES.items() if name in used]
    builtin_names = set(dir(__import__("builtins")))
    helpers = sorted(used - set(_IMPORTED_MODULES) - _DEFINED_IN_FILE - builtin_names)
    imported = ", ".join([*helpers, "___guard", "live_table"])
    return "\n".join(
        [
            *sorted(modules),
            f"from {RUNTIME} import {imported}",
            "",
            "# Object ids and guards that only PyTorch can evaluate, filled in when this file is imported in the",
            "# process that compiled. Elsewhere classes are compared by name, and the rest raises NotLiveError.",
            "___live = live_table(__file__)",
            "___ids = ___live.ids",
            "___names = ___live.names",
            "",
        ]
    )


def names_used(entries: Sequence[EntryGuards]) -> Set[str]:
    """Return the names that the guard expressions refer to."""
    found: Set[str] = set()
    for entry in entries:
        found |= entry.naming.used
    return found


def namespace(entries: Sequence[EntryGuards], table: LiveTable) -> Dict[str, Any]:
    """Return the globals that the guard functions see when they are run without a file."""
    names: Dict[str, object] = {"___live": table, "___ids": table.ids, "___names": table.names}
    names["___guard"] = guard_runtime.___guard
    text = "\n".join(_IMPORTED_MODULES[name] for name in names_used(entries) if name in _IMPORTED_MODULES)
    exec(text, names)
    for name in names_used(entries) - set(names) - _DEFINED_IN_FILE - set(dir(__import__("builtins"))):
        names[name] = getattr(guard_runtime, name)
    return names
