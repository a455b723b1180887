"""The names of the files of a dump: every one is written and parsed here, and nowhere else.

What makes a name unique is not known here: numbers are given by ``dynamo/store/directory.py``, which also marks the
names of other processes (``marked``). Parts that come from names of the program are made fit before (``file_stem``).
"""

from __future__ import annotations

import os
import re
from typing import Dict, List, Literal, Mapping, NamedTuple, Optional, Tuple, get_args

from depyf.asynchronous import synchronous
from depyf.lazy_pattern import re_compile

INDEX = "index"
"""The page and the Markdown index, without their endings."""

_MANIFEST = "manifest"
_FULL_CODE = "full_code_for_"
_TRANSFORMED = "__transformed_code_"
_COMPILED = "__compiled_fn_"
_KERNEL = ".kernel_"
_WRAPPER = ".AOT_"
_RANK, _PROCESS = "rank_", "process_"
_MARKED_BEFORE = (".json", ".md", ".html")
"""The endings, besides ``.py``, that a mark stands before."""

_MARK = rf"(?:\.(?P<mark>(?:{_RANK}|{_PROCESS})\d{{1,9}}))?"
_NUMBER = r"(?P<number>\d{1,9})"

Note = Literal["eager_fallbacks", "missing_stages"]
"""The texts for the user about a dump as a whole, as their files are named."""

FileKind = Literal["graph", "kernels", "wrapper", "transformed", "full_code", "note"]
"""What a file of a dump holds, as manifests call it."""

_PATTERNS: Dict[FileKind, str] = {
    "kernels": rf"(?P<graph>[\w-]+){re.escape(_KERNEL)}{_NUMBER}{_MARK}\.py",
    "wrapper": rf"(?P<graph>[\w-]+){re.escape(_WRAPPER)}(?P<stage>\w+)\.{_NUMBER}{_MARK}\.py",
    "graph": rf"(?P<graph>[\w-]+)\.(?P<stage>[A-Za-z][\w.-]*)\.{_NUMBER}{_MARK}\.py",
    "transformed": rf"{_TRANSFORMED}{_NUMBER}_for_(?P<function>.+?){_MARK}\.py",
    "full_code": rf"{_FULL_CODE}(?P<function>[^.]+)_{_NUMBER}{_MARK}\.py",
    "note": rf"(?P<stage>{'|'.join(get_args(Note))})_{_NUMBER}(?:\.txt){_MARK}(?:\.txt)?",
}
"""By kinds of artifacts; the first that fits counts."""

_KINDS = {kind: re_compile(pattern) for kind, pattern in _PATTERNS.items()}
_OF_A_GRAPH = re_compile(rf"({_COMPILED}-?\d+)\.(.+)\.(\d+)\.py")
_DUMPED = re_compile(rf"{_TRANSFORMED}\d+_for_.*\.py|{_COMPILED}\d+\..*\.py|{_FULL_CODE}.*\.py")
_PROCESS_FOLDER = re_compile(r"rank(\d{1,9})|(?:rank(\d{1,9})_)?pid\d{1,10}")
_NO_GRAPH = re_compile(rf"(?:{re.escape(_KERNEL)}|{re.escape(_WRAPPER)}).*")


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
    """What the numbers of AOTAutograd's wrappers of one kind are counted by."""
    return f"{function}{_WRAPPER}{artifact}"


def wrapper_stage(artifact: str) -> str:
    """The part of the name between the function and the number, which shows as the stage of a wrapper."""
    return f"{_WRAPPER[1:]}{artifact}"


def transformed_stem(number: int, function: str) -> str:
    """The name of the function in the file as well, and in the full_code file."""
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


# Marks of processes


def rank_mark(rank: int) -> str:
    return f"{_RANK}{rank}"


def process_mark(number: int) -> str:
    return f"{_PROCESS}{number}"


def marked(name: str, mark: str) -> str:
    """``name`` with ``mark`` before what says its type: what belongs together sorts together."""
    stem, python, rest = name.rpartition(".py")
    if python:
        return f"{stem}.{mark}{python}{rest}"
    stem, ending = os.path.splitext(name)
    return f"{stem}.{mark}{ending}" if ending in _MARKED_BEFORE else f"{name}.{mark}"


def rank_of_mark(mark: str) -> Optional[int]:
    """The rank that a mark is of; None for those of other processes."""
    return int(mark[len(_RANK) :]) if mark.startswith(_RANK) else None


def is_mark_of_process(mark: str) -> bool:
    return mark.startswith(_PROCESS)


def process_folder(rank: Optional[int], process: Optional[int]) -> str:
    """The folder of a process of a program that was followed, by its rank, its number for the system, or both."""
    parts = [] if rank is None else [f"rank{rank}"]
    return "_".join([*parts, *([] if process is None else [f"pid{process}"])])


# Parsed


def kinds_of(name: str) -> Mapping[FileKind, FileName]:
    """What a file of this name can be, the likeliest first; empty for what is no file of a dump."""
    matches = ((kind, pattern.fullmatch(name)) for kind, pattern in _KINDS.items())
    return {kind: FileName(kind, match.groupdict()) for kind, match in matches if match is not None}


def graph_in(name: str) -> Optional[GraphFileName]:
    """The graph that a file of this name may hold: wrappers are named alike."""
    match = _OF_A_GRAPH.fullmatch(name)
    return None if match is None else GraphFileName(*match.groups())


def is_dumped_code(name: str) -> bool:
    """Whether this is the name of Python code of a dump: of a function or of what belongs to a compiled one."""
    return _DUMPED.fullmatch(name) is not None


def begins_like_what_runs(name: str) -> bool:
    """Whether code that runs from a file of this name runs from a dump: it is called by the user's line."""
    return name.startswith((_COMPILED, _TRANSFORMED))


def is_of_a_function(name: str) -> bool:
    """Whether this is the name of a file that is about a function of the program, and about no graph."""
    return name.startswith((_TRANSFORMED, _FULL_CODE))


def graph_part(stem: str) -> str:
    """What is before the part of a name, without its ending, that says that it is no graph."""
    return _NO_GRAPH.sub("", stem)


def is_manifest(name: str) -> bool:
    return name.startswith(_MANIFEST)


def manifests_in(directory: str) -> str:
    """What ``glob`` finds the manifests of a directory with; its own characters are to be escaped in ``directory``."""
    return os.path.join(directory, f"{_MANIFEST}*.json")


def mark_of_manifest(name: str) -> str:
    """The mark in the name of a manifest; empty where it has none."""
    return name[len(_MANIFEST) : -len(".json")].strip(".")


def process_folders(directory: str) -> List[str]:
    """The folders of the processes of a program that was followed into this directory: ranks first, then by number."""
    try:
        with os.scandir(directory) as entries:
            names = [each.name for each in entries if is_process_folder(each.name) and each.is_dir()]
    except synchronous(OSError):
        return []
    return sorted(names, key=_order)


def is_process_folder(name: str) -> bool:
    """Whether a folder of this name is that of a process of a program that was followed."""
    return _PROCESS_FOLDER.fullmatch(name) is not None


def is_folder_of_rank(name: str) -> bool:
    """Whether it is that of a rank itself, and not of a process that it started."""
    return is_process_folder(name) and "pid" not in name


def _order(name: str) -> Tuple[bool, Tuple[int, ...]]:
    return name.startswith("pid"), tuple(map(int, re.findall(r"\d+", name)))
