"""``depyf verify``; its arguments are in ``decompiling.py``."""

from __future__ import annotations

import argparse
import json
from typing import Dict, Iterator, List, Mapping

from depyf.base.messages import cut, error_line
from depyf.base.regular_files import read_text, write_whole
from depyf.base.visible import visible
from depyf.cli.sweep_and_decompile import check_nothing_is_lost
from depyf.decompiler import CertificateError, check_certificate, check_python, write_certificate
from depyf.sweep.edited_files import AROUND, EditedRow, Same, certified_codes, compare_files, open_both
from depyf.sweep.limits import TimeLimit, memory_limited, time_limited
from depyf.sweep.targets import Module
from depyf.sweep.unreadable import UnreadableError

DIFFERENT, UNPROVED = 1, 3
"""The exit statuses beside 0; a function that only one file has counts as a difference."""

_WIDTH = max(len(same.value) for same in Same)
_MOST_OF_REASON = 600
_MOST_GUARDS = 20


def verify(options: argparse.Namespace) -> int:
    """Run ``depyf verify``; return the exit status."""
    check_python()
    try:
        with memory_limited(options.memory):
            return _verify(options)
    except MemoryError:
        error_line(visible(f"depyf: {options.edited}: needs more than {options.memory} MiB (--memory)"))
    return UNPROVED


def _verify(options: argparse.Namespace) -> int:
    original, edited = open_both(options.edited, options.original, options.python)
    written = [file for file in (options.json, options.certificate) if file]
    if written:
        check_nothing_is_lost([original.path, edited.path], written, force=True)
    for remark in original.remarks:
        error_line(visible(f"depyf: {original.path}: {remark}"))
    if options.check:
        if options.json:
            raise UnreadableError("--check compares nothing, so it has no rows for --json")
        return _check(options, original, edited)
    rows: List[EditedRow] = []
    for row in compare_files(original, edited, options.timeout):
        rows.append(row)
        for line in _lines(row):
            print(visible(line))
    status = _status(rows)
    print(_summary(rows))
    if options.json:
        head = {"original": original.path, "edited": edited.path, "status": status}
        write_whole(options.json, [json.dumps({**head, "rows": [_as_json(row) for row in rows]}, indent=1), "\n"])
    if options.certificate and not status:
        status = _certify(options, original, edited)
    return status


def _certify(options: argparse.Namespace, original: Module, edited: Module) -> int:
    """Write the certificate of the proof, if the checker accepts it; return the exit status."""
    codes = certified_codes(original, edited)
    try:
        with time_limited(options.timeout):
            text = write_certificate(*codes)
            states = check_certificate(text, *codes)
    except (ValueError, TimeLimit) as error:
        error_line(visible(f"depyf: {options.certificate} is not written: {_why_not(error, options.timeout)}"))
        return UNPROVED
    write_whole(options.certificate, [text, "\n"])
    print(visible(f"{options.certificate} certifies {_certified(original, edited)}; checked (states: {states})"))
    return 0


def _check(options: argparse.Namespace, original: Module, edited: Module) -> int:
    """Check a certificate, without the verifier; return the exit status."""
    text, about = read_text(options.check), _certified(original, edited)
    try:
        with time_limited(options.timeout):
            states = check_certificate(text, *certified_codes(original, edited))
    except (CertificateError, TimeLimit) as error:
        print(visible(f"{options.check} proves nothing about {about}: {_why_not(error, options.timeout)}"))
        return UNPROVED
    print(visible(f"{options.check} proves that {about} behave the same; checked (states: {states})"))
    return 0


def _why_not(error: BaseException, seconds: float) -> str:
    if isinstance(error, TimeLimit):
        return f"not done in {seconds:g} s of CPU time (--timeout)"
    return " ".join(cut(str(error), _MOST_OF_REASON).split())


def _certified(original: Module, edited: Module) -> str:
    """Return what a certificate is about, in words."""
    wanted = edited.wanted or original.wanted
    if not wanted:
        return "the two files"
    return f"the two {wanted}, apart from decorators, default values and annotations,"


def _status(rows: List[EditedRow]) -> int:
    verdicts = {row.same for row in rows}
    if verdicts & {Same.DIFFERENT, Same.ONLY_ORIGINAL, Same.ONLY_EDITED}:
        return DIFFERENT
    return UNPROVED if Same.UNPROVED in verdicts else 0


def _lines(row: EditedRow) -> Iterator[str]:
    """Yield the lines for one row: the verdict, then what differs."""
    name = "the statements outside of functions and classes" if row.name == AROUND else row.name
    notes = row.notes()
    yield f"{row.same.value:<{_WIDTH}}  {name}" + (f" ({'; '.join(notes)})" if notes else "")
    indent = " " * (_WIDTH + 4)
    change = row.guards
    if change is not None:
        texts = [f"guard that is gone: {text}" for text in change.gone]
        texts += [f"guard that is new: {text}" for text in change.new]
        texts += ["the guards that both have are in another order"] if change.is_reordered else []
        yield from (indent + cut(text, _MOST_OF_REASON) for text in texts[:_MOST_GUARDS])
        if len(texts) > _MOST_GUARDS:
            yield f"{indent}and {len(texts) - _MOST_GUARDS} more"
    # For guards that are gone or new the texts say more than the first step that differs.
    if row.comparison.reason and not (change is not None and (change.gone or change.new)):
        yield indent + " ".join(cut(row.comparison.reason, _MOST_OF_REASON).split())


def _summary(rows: List[EditedRow]) -> str:
    """Return the last line: how often there is each verdict, and what that means for the whole."""
    counts = {same: sum(row.same is same for row in rows) for same in Same}
    counted = ", ".join(f"{count} {same.value}" for same, count in counts.items() if count)
    meaning = {0: "proved to be the same", DIFFERENT: "not the same", UNPROVED: "not proved to be the same"}
    return f"EDITED is {meaning[_status(rows)]}: {counted}"


def _as_json(row: EditedRow) -> Mapping[str, object]:
    original, edited = row.comparison.lines
    found: Dict[str, object] = {
        "name": row.name,
        "verdict": row.same.value,
        "reason": row.comparison.reason,
        "line_of_original": original,
        "line_of_edited": edited,
        "renamed": dict(row.comparison.renamed),
        "compiler_changes": sorted(row.comparison.compiler_changes),
    }
    if row.guards is not None:
        found["guards"] = {
            "gone": list(row.guards.gone),
            "new": list(row.guards.new),
            "reordered": row.guards.is_reordered,
        }
    return found
