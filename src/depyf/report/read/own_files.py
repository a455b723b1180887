"""Recognise files that depyf wrote: only those are replaced by a page, an ``index.md`` or a manifest."""

from __future__ import annotations

import errno
import os
from typing import Iterable

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.regular_files import open_regular
from depyf.torch_trace import file_names

MARKDOWN_MARK = "<!-- generator: depyf -->"

SVG_MARK = '<?xml version="1.0" encoding="UTF-8"?>\n<!-- generator: depyf -->\n'

TRACE_MARK = '{"otherData": {"generator": "depyf"}'

_MARKS = {
    ".html": [b'<meta name="generator" content="depyf'],  # web/page.html
    ".htm": [b'<meta name="generator" content="depyf'],
    ".md": [MARKDOWN_MARK.encode()],
    ".svg": [SVG_MARK.encode()],
    ".json": [b'{"schema":', TRACE_MARK.encode()],  # how to_json and perfetto_trace begin
}

_HEAD = 2048


def may_be_written(path: str) -> bool:
    """Return whether it is safe to write there: the file does not exist, or depyf wrote it."""
    if not os.path.lexists(path):
        return True
    try:
        with open_regular(path) as file:
            head = file.read(_HEAD)
            return any(mark in head for mark in _MARKS[os.path.splitext(path)[1]])
    except synchronous(OSError):
        return False


_OF_A_DUMP = regex(
    rb"a breakpoint in it |a breakpoint here never stops|Whether this file runs depends on|under torch\.compile \("
    rb"|__transformed_code_|compile id |What torch\.compile was to compile|What is not in this dump, why"
    rb"|class \w+\(torch\.nn\.Module\)|^\x80[\x02-\x05]"
)
"""What stands in each file of a dump, also of a process that was killed, and of depyf 0.20: status lines, names of
Dynamo's functions; of bytecode the head of a pickle."""

_SEARCHED = 1 << 16


def is_of_the_program(path: str) -> bool:
    """Return whether a file of a dump would replace a file that depyf did not write, or a link or folder."""
    if not os.path.lexists(path):
        return False
    try:
        with open_regular(path, follow=False) as file:
            head = file.read(_SEARCHED)
            file.seek(max(file.tell() - _SEARCHED, os.fstat(file.fileno()).st_size - _SEARCHED, 0))
            return bool(head) and not any(map(_OF_A_DUMP.search, (head, file.read())))
    except synchronous(OSError):
        return os.path.lexists(path)


def check(paths: Iterable[str]) -> None:
    """Raise ``FileExistsError`` if depyf did not write one of these."""
    for path in paths:
        if not may_be_written(path):
            words = "not written by depyf, and so not replaced; name another file or directory with -o"
            raise FileExistsError(errno.EEXIST, words, path)


def page_stem(directory: str, suffix: str = "") -> str:
    """Return the names of the page and the index without extension: ``index``, unless that is the user's own file."""
    stem, number = file_names.INDEX, 1
    while not all(
        may_be_written(os.path.join(directory, file(stem, suffix)))
        for file in (file_names.page_file, file_names.index_file)
    ):
        stem = "depyf_index" if number == 1 else f"depyf_index_{number}"
        number += 1
    return stem


def manifest_name(directory: str, suffix: str = "") -> str:
    """Return ``manifest.json``, or ``manifest.depyf.json`` if that is a file of the user (web applications have
    one)."""
    name = file_names.manifest_file(suffix)
    return name if may_be_written(os.path.join(directory, name)) else file_names.manifest_file(f"{suffix}.depyf")


def summary_name(directory: str) -> str:
    """Return ``rank_summary.json``, or ``rank_summary.depyf.json`` if that is the user's own file."""
    name = file_names.summary_file()
    return name if may_be_written(os.path.join(directory, name)) else file_names.summary_file(".depyf")
