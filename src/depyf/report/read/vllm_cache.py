"""Read the directory in which vLLM keeps what it has compiled, without running or unpickling anything in it.

The layout, as vLLM writes it: ``torch_compile_cache/<hash>/rank_<rank>_<data parallel rank>/<part of the model>``, in
older versions without the last folder. One file has what the hash was made of (``env``, ``config``, ``compiler``,
``code``, and hashes of the last three), another one a dictionary with one key for each compiled graph, ``(sizes, graph,
compiler)``: ``sizes`` is ``None`` for all sizes, one size, or a pair of the first and the last size.
``torch_aot_compile/<hash>/rank_<...>/model`` is one file with everything.
"""

from __future__ import annotations

import os
import time
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.messages import cut, listed
from depyf.base.quick_dataclass import dataclass
from depyf.base.regular_files import read_text
from depyf.report.model.headline import many
from depyf.torch_trace.json_text import parsed

_FACTORS, _INDEX, _AOT = "cache_key_factors.json", "vllm_compile_cache.py", "model"
_RANK = regex(r"rank_\d+_\d+\Z")
_KEY = regex(r"\(\s*(None|\d+|\(\s*\d+,\s*\d+\s*\)),\s*(?:\d+|'\w+'),\s*'\w+'\s*\)\s*:")
_DEPTH = 5
_MOST_FOLDERS = 20_000
_SHOWN, _LONGEST = 12, 60
_READABLE = ("computation_graph.py", "transformed_code.py")


@dataclass(frozen=True)
class VllmCache:
    """One folder of compiled graphs. ``title`` is its path from the hash on, ``sizes`` the number of graphs for each
    range of sizes, ``factors`` what the hash was made of (None where that is not stored, or can't be read), ``content``
    bytes by name, ``written`` the time of the newest file."""

    title: str
    factors: Optional[Mapping[str, object]]
    sizes: Mapping[str, int]
    content: Mapping[str, int]
    written: float

    def lines(self) -> List[str]:
        """Return what is in it."""
        written = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.written))
        largest = sorted(self.content, key=lambda name: -self.content[name])
        held = listed([f"{name} {_bytes(self.content[name])}" for name in largest], 4)
        found = [f"{self.title}: {_bytes(sum(self.content.values()))}, written {written}", f"  {held}"]
        if self.sizes:
            ranges = listed([f"{name} ({count})" for name, count in self.sizes.items()], 8)
            found.append(f"  {many(sum(self.sizes.values()), 'compiled graph')}, by sizes: {ranges}")
        found.append(f"  {self._of_factors()}")
        readable = [name for name in _READABLE if name in self.content]
        return [*found, *([f"  to read: {', '.join(readable)}"] if readable else [])]

    def _of_factors(self) -> str:
        if self.factors is None:
            return f"what its hash was made of is not stored (no {_FACTORS} that can be read)"
        numbers = [f"{name} ({len(each)})" for name, each in self.factors.items() if isinstance(each, (dict, list))]
        hashes = [f"{name} {cut(str(each), 12)}" for name, each in self.factors.items() if isinstance(each, str)]
        return f"its hash was made of {', '.join(numbers) or 'nothing known'}" + (
            f"; {', '.join(hashes)}" if hashes else ""
        )


def read_vllm_caches(path: str) -> List[VllmCache]:
    """Return the folders of compiled graphs at ``path`` or in it; none if there is no such folder."""
    found = []
    root = os.path.abspath(path)
    for number, (folder, folders, files) in enumerate(os.walk(root)):
        is_aot = _AOT in files and bool(_RANK.match(os.path.basename(folder)))
        if _FACTORS in files or _INDEX in files or is_aot:
            found.append(_cache(folder, files))
            folders.clear()  # the rest is what PyTorch has made
        elif folder[len(root) :].count(os.sep) >= _DEPTH or number > _MOST_FOLDERS:
            folders.clear()
        folders.sort()
    return found


def differing_factors(before: VllmCache, now: VllmCache) -> List[str]:
    """Return the factors of two hashes that differ, each with its values."""
    if before.factors is None or now.factors is None:
        return ["not known: at least one of them does not store what its hash was made of"]
    then, today = dict(_flat("", before.factors)), dict(_flat("", now.factors))
    names = [name for name in dict.fromkeys([*then, *today]) if then.get(name) != today.get(name)]
    # A hash says only that one of the factors differs, which has a line of its own where it is stored.
    names.sort(key=lambda name: name.endswith("_hash"))
    shown = [f"{name}: {_value(then, name)} before, {_value(today, name)} now" for name in names[:_SHOWN]]
    more = len(names) - len(shown)
    return [*shown, *([f"and {more} more"] if more > 0 else [])] or ["none differs"]


def _cache(folder: str, files: Sequence[str]) -> VllmCache:
    parts = folder.split(os.sep)
    rank = max((at for at, part in enumerate(parts) if _RANK.match(part)), default=len(parts) - 1)
    content, written = _content(folder)
    sizes: Dict[str, int] = {}
    for text in _KEY.findall(_text(folder, _INDEX)) if _INDEX in files else ():
        name = "any size" if text == "None" else " to ".join(text.strip("() ").replace(",", " ").split())
        sizes[name] = sizes.get(name, 0) + 1
    try:
        factors = parsed(_text(folder, _FACTORS))
    except synchronous(ValueError):
        factors = None
    title = "/".join(parts[max(0, rank - 1) :])
    return VllmCache(title, factors if isinstance(factors, dict) else None, sizes, content, written)


def _text(folder: str, name: str) -> str:
    try:
        return read_text(os.path.join(folder, name), follow=False)
    except synchronous(OSError):
        return ""


def _content(folder: str) -> Tuple[Dict[str, int], float]:
    """Return the bytes of each file and folder directly in ``folder``, and the time of the newest file."""
    content: Dict[str, int] = {}
    newest = 0.0
    for number, (directory, folders, files) in enumerate(os.walk(folder)):
        if number > _MOST_FOLDERS:
            folders.clear()
        for name in files:
            try:
                status = os.lstat(os.path.join(directory, name))
            except synchronous(OSError):
                continue
            first = os.path.relpath(directory, folder).split(os.sep)[0]
            of = name if first == "." else f"{first}/"
            content[of] = content.get(of, 0) + status.st_size
            newest = max(newest, status.st_mtime)
    return content, newest


def _flat(name: str, value: object) -> Iterator[Tuple[str, str]]:
    """Yield the single values in a value of JSON, each with its path."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), each)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _flat(f"{name}[{number}]", each)
    else:
        yield name, str(value)


def _value(values: Mapping[str, str], name: str) -> str:
    return cut(values[name], _LONGEST) if name in values else "not there"


def _bytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size:,} bytes"
