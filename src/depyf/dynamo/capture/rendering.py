"""Make the file for one of Dynamo's code objects, and the code object that runs from this file."""

from __future__ import annotations

import dis
import weakref
from dataclasses import field
from types import CodeType
from typing import Dict, List, Mapping, Optional, Sequence, Tuple, Union

from depyf.base.asynchronous import synchronous
from depyf.base.messages import describe
from depyf.base.quick_dataclass import dataclass
from depyf.base.source_lines import source_lines
from depyf.decompiler import Decompilation, DecompilationError, Hints, Verdict, decompile_code
from depyf.dynamo.capture.equal_code import EqualCode, Recalled
from depyf.dynamo.capture.listing import listing_of, running_from
from depyf.dynamo.entries.decorated import shown_name_now
from depyf.dynamo.entries.hints import hints_for
from depyf.dynamo.hooks import compile_ids, frames, nested_code
from depyf.dynamo.hooks.safely import report_failure, safely
from depyf.dynamo.store.names import StableNames, rename
from depyf.report.render.hidden_values import HiddenValues

FAILED = "failed"
"""Replaces the verdict if there is no source at all."""

_WITH = {False: "", True: ", with what the first lines list,"}

_NO_STOP = "stepping=False: it runs with the lines of your own file, a breakpoint here never stops."

_HIDDEN = "# values='types': the code that runs has the values for which __hidden_<type>_<number> stand."

_VARARGS, _VARKEYWORDS = 0x04, 0x08  # inspect.CO_VARARGS, inspect.CO_VARKEYWORDS


@dataclass(frozen=True)
class Rendering:
    """``code`` runs from a file that holds ``text``. ``source`` is the decompiled source, None without one. If it is
    ``proved``, ``code`` was compiled from it; otherwise ``code`` is the original bytecode, ``text`` the listing of that
    bytecode, and ``reason`` says why the source is not proved."""

    text: str
    code: CodeType
    source: Optional[str]
    verdict: str
    reason: str
    lines: Mapping[int, int] = field(default_factory=dict)
    """Lines of ``text`` that are still lines of the user's function, and those lines."""

    @property
    def proved(self) -> bool:
        return self.verdict != FAILED and Verdict(self.verdict).code_proved


def render(
    transformed: CodeType,
    original: CodeType,
    name: str,
    path: str,
    stable: StableNames,
    graph_outputs: Optional[Mapping[str, int]] = None,
    *,
    earlier: Optional[str] = None,
    runs: bool = True,
) -> Rendering:
    """Render Dynamo's ``transformed`` code of ``original`` for the file ``path``, as a function called ``name``.

    ``graph_outputs`` has the number of outputs of the compiled graphs, by their stable names. ``earlier`` is the
    compile id of code that was compiled before any capture. The code that runs is then not replaced. It is not replaced
    with ``runs=False`` either, and the text says so. The text has names in place of values that ``stable`` hides; the
    code that runs has the values.
    """
    _learn_program(stable.hidden, original)
    compile_id = earlier or str(compile_ids.current_compile_id())
    readable, real_names = stable.code(transformed)
    readable = readable.replace(co_name=name)  # transformed code of a lambda needs a ``def``: it holds statements
    hints = hints_for(readable, original, real_names, frames.frame_globals(original), graph_outputs or {})
    decompilation, code, reason = _decompiled(readable, name, hints, path, _equal.setdefault(stable, EqualCode()))
    # Proved: the compiled source gets the real names of globals, the code's own names, and the user's nested functions
    # back. Dynamo refuses code with other arguments, free variables or cell variables (``convert_frame`` raises
    # AssertionError), so that is checked before.
    if decompilation is not None and decompilation.verdict.code_proved:
        code = code and rename(code, real_names).replace(**nested_code.name_fields(transformed))
        code = code and with_own_functions(code, transformed)
        if code is not None and not same_interface(code, original):
            code, reason = None, "the compiled source has other arguments or closure variables"
        if code is not None:
            verdict = decompilation.verdict.value
            proof = f"# {verdict}: proved{_WITH[bool(decompilation.placeholders)]} to be the same as Dynamo's bytecode"
            notes = [_origin(original, stable, compile_id), f"{proof}{_which_runs(earlier, runs=runs)}"]
            shown, note = _without_values(_with_stable_head(decompilation.source, stable), stable.hidden)
            text = "\n".join([shown.rstrip(), "", "", *notes, *note, ""])
            lines = _users_lines(decompilation.line_map.lines, transformed)
            return Rendering(text, code, shown, verdict, stable.text(decompilation.reason), lines)
    # Not proved: Dynamo's bytecode runs, from a listing, with the source as a comment.
    header = [f"{name}: Dynamo's own bytecode runs, instruction by instruction below.", f"Why: {_told(reason, stable)}"]
    header += [_origin(original, stable, compile_id).lstrip("# "), *([] if runs else [_NO_STOP])]
    return _listed(transformed, decompilation, header, path, stable, reason)


def _told(text: str, stable: StableNames) -> str:
    return text if stable.hidden is None else stable.hidden.message(text)


def _listed(
    transformed: CodeType,
    decompilation: Union[Decompilation, Recalled, None],
    header: Sequence[str],
    path: str,
    stable: StableNames,
    reason: str,
) -> Rendering:
    """Return the rendering of code whose source is not proved: a listing of its bytecode below ``header``."""
    source = None
    if decompilation is not None:
        source, note = _without_values(decompilation.source, stable.hidden)
        header = [*header, "", "Source that is probably right, but not proved:", *source.splitlines(), *note]
    listing = listing_of(transformed, "\n".join(header).splitlines(), stable)
    verdict = FAILED if decompilation is None else "unverified"
    lines = _users_lines(listing.lines, transformed)
    code = running_from(transformed, listing, path)
    return Rendering(listing.text, code, source, verdict, _told(reason, stable), lines)


def _learn_program(hidden: Optional[HiddenValues], original: CodeType) -> None:
    """Note what the author of the program wrote: the code of a function, and its file."""
    if hidden is not None:
        hidden.learn_code(original)
        hidden.learn_source("".join(source_lines(original.co_filename)))


def _without_values(source: str, hidden: Optional[HiddenValues]) -> Tuple[str, List[str]]:
    """Return the source without hidden values, all lines where they are, and a comment if there are any."""
    shown = source if hidden is None else hidden.code(source)
    return shown, [] if shown == source else [_HIDDEN]


def _which_runs(earlier: Optional[str], *, runs: bool) -> str:
    if earlier:
        return ""
    return ", in whose place it runs" if runs else f", which runs\n# {_NO_STOP}"


def _users_lines(line_at: Mapping[int, int], transformed: CodeType) -> Dict[int, int]:
    """Return the user's line of each line of a text that has such a line; ``line_at`` has the text's lines by offset.

    Dynamo leaves the line numbers on the instructions that it takes over. Instructions that it adds have the line of
    the ``def``.
    """
    starts = dis.findlinestarts(transformed)
    found: Dict[int, int] = {}
    for offset, line in starts:
        if line is not None and line != transformed.co_firstlineno and offset in line_at:
            found.setdefault(line_at[offset], line)
    return found


def _origin(original: CodeType, stable: StableNames, compile_id: str) -> str:
    """Return a comment that names the origin of the code."""
    place = stable.text(f"{shown_name_now(original)} ({original.co_filename}:{original.co_firstlineno})")
    return f"# from {' '.join(place.split())}, compile id {compile_id}"


def _with_stable_head(source: str, stable: StableNames) -> str:
    """Return ``source`` with stable names in the comment at its head, which describes any objects."""
    lines = source.split("\n")
    for number, line in enumerate(lines):
        if not line.startswith("#"):
            break
        lines[number] = stable.text(line)
    return "\n".join(lines)


def with_own_functions(code: CodeType, transformed: CodeType) -> CodeType:
    """Return ``code``, which was proved to be the same as ``transformed``, with the nested code objects of
    ``transformed``. They keep the user's files and lines, which Dynamo shows when it compiles them in turn.
    """
    own = [constant for constant in transformed.co_consts if isinstance(constant, CodeType)]
    made = [constant for constant in code.co_consts if isinstance(constant, CodeType)]

    def original_of(constant: object) -> object:
        if not isinstance(constant, CodeType):
            return constant
        key = _function_key(constant)
        alike = [each for each in own if _function_key(each) == key]
        several = sum(_function_key(each) == key for each in made) > 1
        return alike[0] if len(alike) == 1 and not several else constant

    return code.replace(co_consts=tuple(map(original_of, code.co_consts))) if made else code


def _function_key(code: CodeType) -> Tuple[object, ...]:
    """Return the key of code: with equal keys, either can be the code of a function."""
    return (code.co_name, code.co_freevars, _arguments(code))


def same_interface(code: CodeType, original: CodeType) -> bool:
    """Return whether Dynamo accepts ``code`` for ``original``: equal arguments, free variables and cell variables."""
    return (
        _arguments(code) == _arguments(original)
        and code.co_freevars == original.co_freevars
        and code.co_cellvars == original.co_cellvars
    )


def _arguments(code: CodeType) -> Tuple[object, ...]:
    star = (bool(code.co_flags & _VARARGS), bool(code.co_flags & _VARKEYWORDS))
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, *star)
    total = code.co_argcount + code.co_kwonlyargcount + sum(star)
    return (counts, code.co_varnames[:total])


_equal: weakref.WeakKeyDictionary[StableNames, EqualCode] = weakref.WeakKeyDictionary()
"""What each session has decompiled, by its names."""


def _decompiled(
    code: CodeType, name: str, hints: Hints, path: str, equal: EqualCode
) -> Tuple[Union[Decompilation, Recalled, None], Optional[CodeType], str]:
    """Return the decompilation, its code in the file ``path`` if it is proved, and the reason if one is missing."""
    recalled = safely("looking for an equal transformed code object")(equal.recall)(code, name, hints, path)
    if recalled is not None:
        return recalled, recalled.code, ""
    decompilation, reason = _decompile(code, name, hints)
    if decompilation is None or not decompilation.verdict.code_proved:
        return decompilation, None, reason
    compiled, reason = _compile(decompilation, code, path)
    if compiled is not None:
        safely("remembering a transformed code object")(equal.keep)(name, hints, decompilation, compiled)
    return decompilation, compiled, reason


def _decompile(code: CodeType, name: str, hints: Hints) -> Tuple[Optional[Decompilation], str]:
    """Return the decompilation and why it is not proved; None and the reason if decompiling fails."""
    try:
        decompilation = decompile_code(code, name=name, hints=hints, list_assumptions=False)
    except DecompilationError as error:
        return None, str(error)
    except synchronous() as error:  # a bug of the decompiler must not break the user's compilation
        report_failure("decompiling a transformed code object", error)
        return None, f"internal error, {describe(error)}"
    return decompilation, decompilation.reason


def _compile(decompilation: Decompilation, reference: CodeType, path: str) -> Tuple[Optional[CodeType], str]:
    try:
        return decompilation.compile_like(reference, path), ""
    except DecompilationError as error:
        return None, str(error)
    except synchronous() as error:
        report_failure("compiling decompiled source", error)
        return None, f"internal error, {describe(error)}"
