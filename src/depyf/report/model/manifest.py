"""``manifest.json``: the model as JSON, and back."""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import json
import math
import typing
from typing import Any, Dict, Literal, Mapping, Tuple, Union

from depyf import file_names
from depyf.asynchronous import synchronous
from depyf.report.model.references import dangling
from depyf.report.model.run import SCHEMA, Run


class ManifestError(ValueError):
    """A file that is not a manifest, a damaged one, or one of a newer depyf; the message says which, and what to do."""


class ForeignManifestError(ManifestError):
    """Another file with the name of a manifest: web applications, for example, have one, too."""


def to_json(run: Run) -> str:
    """Return the text of ``manifest.json``. Default values are omitted."""
    try:
        return _dumped(run)
    except synchronous(ValueError, TypeError):  # a number that JSON does not have, or a key that is no text: in metrics
        return _dumped(_plain(run))


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_fields, allow_nan=False)


def without_texts(run: Run) -> Run:
    """The run without the texts of artifacts that have a file of their own: a manifest lies beside them."""
    artifacts = (dataclasses.replace(each, text=None) if each.path is not None else each for each in run.artifacts)
    return dataclasses.replace(run, artifacts=tuple(artifacts))


def from_json(text: str, name: str = file_names.manifest_file()) -> Run:
    """The run that such a text describes; ``name`` is for messages. Fields that this version does not know are ignored.

    Raises ``ManifestError``.
    """
    try:
        data = json.loads(text)
    except synchronous(ValueError, RecursionError) as error:
        raise ForeignManifestError(f"{name}: not a manifest of depyf ({type(error).__name__}: {error})") from error
    if not isinstance(data, dict):
        raise ForeignManifestError(f"{name}: not a manifest of depyf (no JSON object)")
    schema = data.get("schema")
    if type(schema) is not int:
        raise ForeignManifestError(f"{name}: not a manifest of depyf (it has no number of a schema)")
    if schema > SCHEMA:
        raise ManifestError(
            f"{name}: written by a newer depyf (schema {schema}, this one reads up to {SCHEMA}); update depyf"
        )
    try:
        run: Run = _build(Run, data)
        wrong = dangling(run)
    except synchronous(ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise ManifestError(f"{name}: a damaged manifest ({type(error).__name__}: {error})") from error
    if wrong is not None:
        raise ManifestError(f"{name}: a damaged manifest ({wrong})")
    return run


def _fields(value: object) -> object:
    """Convert a part of the model to a dict without default values; anything else to text."""
    kind = type(value)
    if not dataclasses.is_dataclass(kind):
        return str(value)
    found = {}
    for name, default in _defaults_of(kind):
        item = getattr(value, name)
        if name == "schema" or type(item) is not type(default) or item != default:
            found[name] = item
    return found


def _plain(value: object) -> object:
    """Convert ``value`` to valid JSON."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = _fields(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no such number, and other readers than Python's refuse it
    return value


@functools.lru_cache(maxsize=None)
def _defaults_of(kind: type) -> Tuple[Tuple[str, object], ...]:
    """The fields of a dataclass, each with its default (an object that equals nothing where there is none)."""
    return tuple((field.name, _default(field)) for field in dataclasses.fields(kind))


def _default(field: dataclasses.Field[object]) -> object:
    if field.default is not dataclasses.MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else object()


def _build(kind: Any, value: Any) -> Any:
    """``value``, parsed from JSON, as an object of the type ``kind``, which is one that the model uses."""
    origin = typing.get_origin(kind)
    if origin is Union:
        if value is None:
            return None
        return _build(next(each for each in typing.get_args(kind) if each is not type(None)), value)
    if origin is Literal:
        kind = str  # a newer depyf may have written others
    if origin is tuple:
        arguments = typing.get_args(kind)
        if arguments[-1:] == (Ellipsis,):
            return tuple(_build(arguments[0], item) for item in value)
        return tuple(_build(each, item) for each, item in zip(arguments, value))
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        types = _types_of(kind)
        return kind(**{name: _build(types[name], item) for name, item in value.items() if name in types})
    if origin in _MAPPINGS:
        if not isinstance(value, dict):
            raise TypeError(f"{_shown(value)} where there should be an object")
        return value
    if kind in _PLAIN and not isinstance(value, _PLAIN[kind]):
        raise TypeError(f"{_shown(value)} where there should be a {kind.__name__}")
    return value


def _shown(value: object) -> str:
    return repr(value)[:60]


_PLAIN: Dict[object, Tuple[type, ...]] = {str: (str,), bool: (bool,), int: (int,), float: (float, int)}
_MAPPINGS = (dict, collections.abc.Mapping)

_known: Dict[type, Dict[str, object]] = {}


def _types_of(kind: type) -> Dict[str, object]:
    if kind not in _known:
        _known[kind] = typing.get_type_hints(kind)
    return _known[kind]
