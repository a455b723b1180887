"""Names that are the same in every run: for files, for compiled functions, for the globals that Dynamo generates.

Dynamo puts random suffixes (``__compiled_fn_3_0f1e2d3c_...``) and object addresses (``__import_x_139871_c2``) into
global names. Users compare dumps with ``diff -r``, so neither may appear.
"""

from __future__ import annotations

import hashlib
import re
from types import CodeType
from typing import Dict, Mapping, Optional, Tuple

from depyf.base.late_regex import regex
from depyf.base.locks import Lock
from depyf.base.messages import chosen_word
from depyf.dynamo.hooks.nested_code import names_in
from depyf.report.render.hidden_values import HiddenValues
from depyf.torch_trace.addresses import without_addresses

LONGEST_FUNCTION_NAME = 80

READ, EVERYTHING = "read", "all"
FILES = "DEPYF_FILES"
"""The variable that says which files a dump has beside each other."""

_UUID_SUFFIX = regex(r"(__compiled_fn_\d+)_[0-9a-f]{8}_[0-9a-f]{4}_[0-9a-f]{4}_[0-9a-f]{4}_[0-9a-f]{12}")
_OBJECT_ID = regex(r"_(\d{9,})(?=_(?:\d+_)?c\d+)")
_GRAPH_ID = regex(r"[ \t]*# graph id: \d+")
_PLACE_IN_TORCH = regex(r"\(_(?:dynamo|functorch|inductor)/[\w/]+\.py:\d+ in \w+\)")
"""The line of torch that requested a guard: it differs when the compiler caches are warm."""
_COMPILED_FN = regex(r"__compiled_fn_(\d+)")


def chosen_files(given: Optional[str] = None) -> str:
    """Return ``EVERYTHING`` or ``READ``: as ``given``, as the environment says, or ``READ``.

    Raises ``ValueError`` for another word. Another word in the environment is reported.
    """
    return chosen_word(given, "dump", FILES, (READ, EVERYTHING), "the dump is as without it") or READ


def file_stem(function_name: str) -> str:
    """Return ``function_name`` as a part of a file name: short, only ASCII letters, digits and underscores."""
    return _short(re.sub(r"[^0-9A-Za-z_]", "_", function_name), function_name)


def stage_stem(stage: str) -> str:
    """Return the name that a pass gave its graph, as a part of a file name: points and hyphens in it stay. Dynamo adds
    the name of the compiled function (``pre_insert_deferred_runtime_asserts __compiled_fn_3``), with which the file
    name begins anyway."""
    stage = re.sub(rf"(?<=\S)\s+{_COMPILED_FN.pattern}$", "", stage)
    return _short(re.sub(r"[^0-9A-Za-z_.-]", "_", stage).strip(".") or "graph", stage)


def _short(stem: str, name: str) -> str:
    if len(stem) <= LONGEST_FUNCTION_NAME:
        return stem
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{stem[: LONGEST_FUNCTION_NAME - 9]}_{digest}"


def compiled_fn_number(name: str) -> Optional[int]:
    """Return the ``3`` of ``__compiled_fn_3`` and of ``__compiled_fn_3_<uuid>``; ``None`` for any other name."""
    match = _COMPILED_FN.match(name)
    return int(match.group(1)) if match else None


class StableNames:
    """Replaces text that differs from run to run by numbers in the order of first appearance. Thread-safe.

    ``hidden`` are the values that no file shows (``values="types"``); None: all values are shown.
    """

    def __init__(self, hidden: Optional[HiddenValues] = None) -> None:
        self.hidden = hidden
        self._lock = Lock()
        self._numbers: Dict[str, int] = {}

    def text(self, text: str) -> str:
        """Return ``text`` without uuid suffixes, object ids and addresses; lines stay lines."""
        # Texts of graphs are long, and most contain none of this: patterns that start with a letter are fast.
        text = _UUID_SUFFIX.sub(r"\1", text)
        text = _OBJECT_ID.sub(lambda match: f"_{self._number(match.group(1))}", text)
        text = _PLACE_IN_TORCH.sub("(inside torch)", text)
        if "# graph id" in text:
            text = _GRAPH_ID.sub("", text)
        return without_addresses(text)

    def code(self, code: CodeType) -> Tuple[CodeType, Mapping[str, str]]:
        """Return ``code`` with stable global names, and the map that ``rename`` needs to give the real ones back."""
        mapping: Dict[str, str] = {}
        self._collect(code, mapping)
        taken = set(names_in(code)) - set(mapping)
        clash = len(set(mapping.values())) != len(mapping) or bool(taken & set(mapping.values()))
        if clash or not mapping:
            return code, {}
        return rename(code, mapping), {stable: real for real, stable in mapping.items()}

    def _collect(self, code: CodeType, mapping: Dict[str, str]) -> None:
        for name in names_in(code):
            stable = self.text(name)
            if stable != name:
                mapping[name] = stable

    def _number(self, key: str) -> int:
        with self._lock:
            return self._numbers.setdefault(key, len(self._numbers))


def rename(code: CodeType, mapping: Mapping[str, str]) -> CodeType:
    """Return ``code`` with the global and attribute names in ``mapping`` replaced, in nested code objects too."""
    if not mapping:
        return code
    consts = tuple(rename(const, mapping) if isinstance(const, CodeType) else const for const in code.co_consts)
    return code.replace(co_names=tuple(mapping.get(name, name) for name in code.co_names), co_consts=consts)
