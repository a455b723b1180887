"""Ids of cache entries and graphs, in every form in which ``why``, ``watch``, the page and the dump show them."""

from __future__ import annotations

import os
import re

from depyf.base.late_regex import regex
from depyf.base.regular_files import read_text
from depyf.torch_trace import file_names

_IN_BRACKETS = regex(r"\[([^\[\]]*\d+/\d+[^\[\]]*)\]")
_AT_THE_END = regex(r".*\[([^\]]+)\]\Z", re.DOTALL)
_TITLE = regex(r"([\w.-]+) of (__compiled_fn_-?\d+)(?: \(\d+\))?\Z")


def normalized(graph_id: str) -> str:
    """Return the id in what pages, lists and lines show: ``f [0/0]``, ``Forward_graph of __compiled_fn_1``, a path."""
    text = graph_id.strip()
    brackets, title = _IN_BRACKETS.search(text) or _AT_THE_END.match(text), _TITLE.match(text)
    if brackets is not None:
        return brackets.group(1).strip()
    if title is not None:
        stage = "" if title.group(1) == "kernels" else f".{title.group(1)}"
        return title.group(2) + stage
    name = os.path.basename(text)[: -len(".py")] if text.endswith(".py") else text
    return file_names.graph_part(name)


def id_in_dump(directory: str, graph_id: str) -> str:
    """Return the id of ``graph_id`` in a dump; for a file that is not a graph, the compile id in it."""
    name = os.path.basename(graph_id.strip())
    if file_names.is_of_a_function(name) and os.path.isfile(os.path.join(directory, name)):
        found = re.search(r"compile id (\S+)", read_text(os.path.join(directory, name), follow=False))
        return graph_id if found is None else found.group(1).rstrip(".,;:")
    return normalized(graph_id)
