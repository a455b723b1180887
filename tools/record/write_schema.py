"""Write docs/answers.schema.json, the schema of what ``--json`` prints, from the types of depyf's answers.

    python tools/record/write_schema.py

Run it when an answer has got a field. A field that was removed, or has another type, needs another ``SCHEMA`` in
``depyf.base.plain_data``.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import json
import sys
import typing
from pathlib import Path
from typing import Any, Dict, Tuple, Type, Union

ROOT = Path(__file__).resolve().parents[2]
PATH = ROOT / "docs" / "answers.schema.json"
sys.path.insert(0, str(ROOT / "src"))

from depyf.answers.attached import AttachedProcesses  # noqa: E402
from depyf.answers.compared import Compared  # noqa: E402
from depyf.answers.expectation import Counted  # noqa: E402
from depyf.answers.extracted import Extracted  # noqa: E402
from depyf.answers.fixed import Fixed  # noqa: E402
from depyf.answers.nonfinite import NonFinitesFound  # noqa: E402
from depyf.answers.parted import PairsCompared  # noqa: E402
from depyf.answers.probed import ProbedValues  # noqa: E402
from depyf.answers.profiled import Profiled  # noqa: E402
from depyf.answers.shadowed import Shadowed  # noqa: E402
from depyf.answers.trace import TraceResult  # noqa: E402
from depyf.answers.watch import Watched  # noqa: E402
from depyf.answers.why import Why  # noqa: E402
from depyf.answers.worth import Worth  # noqa: E402
from depyf.base.plain_data import Answer, data_fields  # noqa: E402
from depyf.report.diff.comparison import RunComparison  # noqa: E402
from depyf.report.render.memory_words import MemoryOfGraphs  # noqa: E402
from depyf.report.render.reported import RanProgram, Reported  # noqa: E402
from depyf.running.documents import SCHEMA  # noqa: E402

ANSWERS: Tuple[Type[Answer], ...] = (
    AttachedProcesses,
    Compared,
    Counted,
    Extracted,
    Fixed,
    MemoryOfGraphs,
    NonFinitesFound,
    PairsCompared,
    ProbedValues,
    Profiled,
    RanProgram,
    Reported,
    RunComparison,
    Shadowed,
    TraceResult,
    Watched,
    Why,
    Worth,
)

Schema = Dict[str, Any]

_OF_TYPES: Dict[object, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    # Numbers that JSON lacks are null.
    float: {"type": ["number", "null"]},
    type(None): {"type": "null"},
    object: {},
    Any: {},
}


def schema() -> Schema:
    """Return the schema of the documents of all answers."""
    definitions: Dict[str, Schema] = {}
    documents = [_document(each, definitions) for each in ANSWERS]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What depyf prints with --json",
        "oneOf": documents,
        "$defs": dict(sorted(definitions.items())),
    }


def _document(kind: Type[Answer], definitions: Dict[str, Schema]) -> Schema:
    properties = {
        "kind": {"const": kind._document},
        "schema": {"const": SCHEMA},
        "depyf": {"type": "string"},
        "text": {"type": "string"},
        "answer": _of(kind, definitions),
    }
    return {"type": "object", "required": list(properties), "properties": properties}


def _of(kind: Any, definitions: Dict[str, Schema]) -> Schema:
    """Return the schema of a type; dataclasses are put into ``definitions``."""
    if kind in _OF_TYPES:
        return _OF_TYPES[kind]
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _of_dataclass(kind, definitions)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [each.value for each in kind]}
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin is Union:
        return {"anyOf": [_of(each, definitions) for each in arguments]}
    if origin in (tuple, list, collections.abc.Sequence):
        if origin is tuple and arguments[-1:] != (Ellipsis,):
            return {"type": "array", "prefixItems": [_of(each, definitions) for each in arguments], "items": False}
        return {"type": "array", "items": _of(arguments[0], definitions)}
    if origin in (dict, collections.abc.Mapping):
        return {"type": "object", "additionalProperties": _of(arguments[1], definitions)}
    raise TypeError(f"no schema for {kind!r}: add a case to {__file__}")


def _of_dataclass(kind: type, definitions: Dict[str, Schema]) -> Schema:
    name = kind.__name__
    if name not in definitions:
        definitions[name] = {}  # it may be in itself
        types = _types(kind)
        required = list(types)
        definitions[name] = {
            "type": "object",
            "required": required,
            "properties": {each: _of(types[each], definitions) for each in required},
        }
    return {"$ref": f"#/$defs/{name}"}


def _types(kind: type) -> Dict[str, object]:
    """Return the types of what an object has as data."""
    hints = typing.get_type_hints(kind)
    found: Dict[str, object] = {}
    for name in data_fields(kind):
        of_class = vars(kind).get(name)
        found[name] = typing.get_type_hints(of_class.fget)["return"] if isinstance(of_class, property) else hints[name]
    return found


def text() -> str:
    """Return the text of the file, with a line for each document and each definition."""
    whole = schema()
    documents = ",\n".join(json.dumps(each) for each in whole.pop("oneOf"))
    definitions = ",\n".join(f"{json.dumps(name)}: {json.dumps(each)}" for name, each in whole.pop("$defs").items())
    return f'{json.dumps(whole)[:-1]}, "oneOf": [\n{documents}\n], "$defs": {{\n{definitions}\n}}}}\n'


def main() -> None:
    """Write the file."""
    PATH.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
