"""The names of the files of a dump: every name is written and parsed here, and nowhere else.

Uniqueness is not decided here: ``dynamo/store/directory.py`` assigns the numbers, and also marks the names of other
processes (``marked``). Parts that come from names of the program are sanitised before (``file_stem``).
"""

from __future__ import annotations

import os
import re
from typing import Dict, List, Literal, Mapping, NamedTuple, Optional, get_args

from depyf.base.asynchronous import suppressed, synchronous
from depyf.base.late_regex import regex

INDEX = "index"
"""The page and the Markdown index, without their suffixes."""

_MANIFEST = "manifest"
_SUMMARY = "rank_summary"
_FULL_CODE = "full_code_for_"
_TRANSFORMED = "__transformed_code_"
_COMPILED = "__compiled_fn_"
_KERNEL = ".kernel_"
_WRAPPER = ".AOT_"
_PASSES = ".passes_"
_RANK, _PROCESS = "rank_", "process_"
STAGES = "stages"
"""The folder in a dump for what is rarely read: graphs between two stages, wrappers, passes."""

_MARKED_BEFORE = (".json", ".md", ".html")
"""The suffixes, besides ``.py``, that a mark precedes."""

_MARK = rf"(?:\.(?P<mark>(?:{_RANK}|{_PROCESS})\d{{1,9}}))?"
_NUMBER = r"(?P<number>\d{1,9})"

Note = Literal["eager_fallbacks", "missing_stages"]
"""The texts for the user about a dump as a whole, by the names of their files."""

FileKind = Literal["graph", "kernels", "wrapper", "transformed", "full_code", "passes", "note"]
"""The contents of a file of a dump, as named in manifests."""

_PATTERNS: Dict[FileKind, str] = {
    "kernels": rf"(?P<graph>[\w-]+){re.escape(_KERNEL)}{_NUMBER}{_MARK}\.py",
    "wrapper": rf"(?P<graph>[\w-]+){re.escape(_WRAPPER)}(?P<stage>\w+)\.{_NUMBER}{_MARK}\.py",
    "graph": rf"(?P<graph>[\w-]+)\.(?P<stage>[A-Za-z][\w.-]*)\.{_NUMBER}{_MARK}\.py",
    "transformed": rf"{_TRANSFORMED}{_NUMBER}_for_(?P<function>.+?){_MARK}\.py",
    "full_code": rf"{_FULL_CODE}(?P<function>[^.]+)_{_NUMBER}{_MARK}\.py",
    "passes": rf"(?P<graph>[\w-]+){re.escape(_PASSES)}{_NUMBER}{_MARK}\.md",
    "note": rf"(?P<stage>{'|'.join(get_args(Note))})_{_NUMBER}(?:\.txt){_MARK}(?:\.txt)?",
}
"""By the kind of artifact; the first match is used."""

_KINDS = {kind: regex(pattern) for kind, pattern in _PATTERNS.items()}
_OF_A_GRAPH = regex(rf"({_COMPILED}-?\d+)\.(.+)\.(\d+)\.py")
_DUMPED = regex(rf"{_TRANSFORMED}\d+_for_.*\.py|{_COMPILED}\d+\..*\.py|{_FULL_CODE}.*\.py")
_PROCESS_FOLDER = regex(r"rank(\d{1,9})|(?:rank(\d{1,9})_)?pid\d{1,10}")
_NO_GRAPH = regex(rf"(?:{re.escape(_KERNEL)}|{re.escape(_WRAPPER)}).*")


class FileName(NamedTuple):
    """The name of a file of a dump, with its parts: ``graph``, ``stage``, ``function``, ``number`` and ``mark``."""

    kind: FileKind
    parts: Mapping[str, Optional[str]]


class GraphFileName(NamedTuple):
    """The name of the file of a graph of a compiled function, in this process: without a mark."""

    function: str
    stage: str
    number: str


# Written


def graph_file(function: str, stage: str, number: int) -> str:
    return f"{function}.{stage}.{number}.py"


def kernel_file(function: str, number: int) -> str:
    return f"{function}{_KERNEL}{number}.py"


def wrapper_file(function: str, artifact: str, number: int) -> str:
    return f"{wrapper_stem(function, artifact)}.{number}.py"


def wrapper_stem(function: str, artifact: str) -> str:
    """Return the key by which AOTAutograd's wrappers of one kind are numbered."""
    return f"{function}{_WRAPPER}{artifact}"


def wrapper_stage(artifact: str) -> str:
    """Return the part of the name between the function and the number, which is shown as the stage of a wrapper."""
    return f"{_WRAPPER[1:]}{artifact}"


def passes_file(function: str, number: int) -> str:
    return f"{passes_stem(function)}{number}.md"


def passes_stem(function: str) -> str:
    """Return the name by which the numbers of the files of passes are counted."""
    return f"{function}{_PASSES}"


def transformed_stem(number: int, function: str) -> str:
    """Return the file name without suffix, which is also the name of the function in the file and in the full_code
    file."""
    return f"{_TRANSFORMED}{number}_for_{function}"


def transformed_file(number: int, function: str) -> str:
    return f"{transformed_stem(number, function)}.py"


def full_code_file(function: str, number: int) -> str:
    return f"{_FULL_CODE}{function}_{number}.py"


def note_file(note: Note, number: int) -> str:
    return f"{note}_{number}.txt"


def page_file(stem: str = INDEX, suffix: str = "") -> str:
    return f"{stem}{suffix}.html"


def index_file(stem: str = INDEX, suffix: str = "") -> str:
    return f"{stem}{suffix}.md"


def manifest_file(suffix: str = "") -> str:
    return f"{_MANIFEST}{suffix}.json"


def summary_file(suffix: str = "") -> str:
    return f"{_SUMMARY}{suffix}.json"


# The folder of stages


def in_stages(name: str) -> str:
    """Return the name of a file in the folder of stages, relative to the dump, on every system with a slash."""
    return f"{STAGES}/{name}"


def is_in_stages(name: str) -> bool:
    """Return whether a file of this name, relative to the dump, is in the folder of stages."""
    return name.startswith(f"{STAGES}/")


def without_folder(name: str) -> str:
    """Return the part of a name, relative to the dump, after the folder of stages."""
    return name.rpartition("/")[2]


def listed(directory: str) -> List[str]:
    """Return the sorted names of the entries of a dump, those in the folder of stages with it. Raises ``OSError`` if
    the directory can't be read; a link in the place of the folder is not followed."""
    names = os.listdir(directory)
    folder = os.path.join(directory, STAGES)
    if STAGES in names and not os.path.islink(folder):
        with suppressed(OSError):
            names += map(in_stages, os.listdir(folder))
    return sorted(names)


# Marks of processes


def rank_mark(rank: int) -> str:
    return f"{_RANK}{rank}"


def process_mark(number: int) -> str:
    return f"{_PROCESS}{number}"


def marked(name: str, mark: str) -> str:
    """Return ``name`` with ``mark`` before its suffix, so that related files are sorted together."""
    stem, python, rest = name.rpartition(".py")
    if python:
        return f"{stem}.{mark}{python}{rest}"
    stem, ending = os.path.splitext(name)
    return f"{stem}.{mark}{ending}" if ending in _MARKED_BEFORE else f"{name}.{mark}"


def rank_of_mark(mark: str) -> Optional[int]:
    """Return the rank of a mark; None for marks of other processes."""
    return int(mark[len(_RANK) :]) if mark.startswith(_RANK) else None


def is_mark_of_process(mark: str) -> bool:
    return mark.startswith(_PROCESS)


def process_folder(rank: Optional[int], process: Optional[int]) -> str:
    """Return the folder of a process of a followed program, by its rank, its process id, or both."""
    parts = [] if rank is None else [f"rank{rank}"]
    return "_".join([*parts, *([] if process is None else [f"pid{process}"])])


# Parsed


def kinds_of(name: str) -> Mapping[FileKind, FileName]:
    """Return the kinds that a file of this name, relative to the dump, may be, the likeliest first; empty if it is not
    a file of a dump."""
    name = without_folder(name) if is_in_stages(name) else name
    matches = ((kind, pattern.fullmatch(name)) for kind, pattern in _KINDS.items())
    return {kind: FileName(kind, match.groupdict()) for kind, match in matches if match is not None}


def graph_in(name: str) -> Optional[GraphFileName]:
    """Return the graph that a file of this name may contain, ``None`` if none: names of wrappers are similar."""
    match = _OF_A_GRAPH.fullmatch(without_folder(name) if is_in_stages(name) else name)
    return None if match is None else GraphFileName(*match.groups())


def is_dumped_code(name: str) -> bool:
    """Return whether this is the name of Python code of a dump: of a function or of a part of a compiled one."""
    return _DUMPED.fullmatch(name) is not None


def begins_like_what_runs(name: str) -> bool:
    """Return whether code from a file of this name runs from a dump: the user's line calls it."""
    return name.startswith((_COMPILED, _TRANSFORMED))


def is_of_a_function(name: str) -> bool:
    """Return whether this is the name of a file about a function of the program, and not about a graph."""
    return name.startswith((_TRANSFORMED, _FULL_CODE))


def graph_part(stem: str) -> str:
    """Return the part of a name without its suffix that precedes the kind of a file that is not a graph."""
    return _NO_GRAPH.sub("", stem)


def is_manifest(name: str) -> bool:
    return name.startswith(_MANIFEST)


def manifests_in(directory: str) -> str:
    """Return a ``glob`` pattern for the manifests of a directory; ``directory`` must be escaped."""
    return os.path.join(directory, f"{_MANIFEST}*.json")


def mark_of_manifest(name: str) -> str:
    """Return the mark in the name of a manifest; empty if it has none."""
    return name[len(_MANIFEST) : -len(".json")].strip(".")


def is_summary(name: str) -> bool:
    return name.startswith(_SUMMARY) and name.endswith(".json")


def summaries_in(directory: str) -> str:
    """Return a ``glob`` pattern for the summaries of ranks in a directory; see ``manifests_in``."""
    return os.path.join(directory, f"{_SUMMARY}*.json")


def mark_of_summary(name: str) -> str:
    """Return the mark in the name of a summary; empty if it has none."""
    return name[len(_SUMMARY) : -len(".json")].strip(".")


def process_folders(directory: str) -> List[str]:
    """Return the folders of the processes of a program followed into this directory: ranks first, then by number."""
    try:
        with os.scandir(directory) as entries:
            names = [each.name for each in entries if is_process_folder(each.name) and each.is_dir()]
    except synchronous(OSError):
        return []
    return sorted(names, key=lambda name: (name.startswith("pid"), [int(each) for each in re.findall(r"\d+", name)]))


def is_process_folder(name: str) -> bool:
    """Return whether a folder of this name belongs to a process of a followed program."""
    return _PROCESS_FOLDER.fullmatch(name) is not None


def is_folder_of_rank(name: str) -> bool:
    """Return whether it belongs to a rank itself, and not to a process that the rank started."""
    return is_process_folder(name) and "pid" not in name
