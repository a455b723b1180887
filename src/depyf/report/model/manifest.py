"""``manifest.json``: the model as JSON, and back. What a manifest refers to by index is checked: it may be damaged."""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import functools
import json
import math
import sys
import typing
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Literal,
    Mapping,
    Optional,
    Set,
    Tuple,
    Type,
    TypeVar,
    Union,
    cast,
)

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import replace
from depyf.base.stored_text import StoredText
from depyf.report.model.places import places_in
from depyf.report.model.run import SCHEMA, EntryGuard, Link, Run
from depyf.torch_trace import file_names
from depyf.torch_trace.json_text import quoted

Kind = TypeVar("Kind")


class ManifestError(ValueError):
    """A file that is not a manifest, a damaged one, or one of a newer depyf; the message has which, and the remedy."""


class ForeignManifestError(ManifestError):
    """Another file with the name of a manifest: web applications, for example, have one, too."""


def to_json(run: Run) -> str:
    """Return the text of ``manifest.json``. Default values are omitted."""
    return "".join(json_parts(run))


def json_parts(run: Run) -> Iterator[str]:
    """Yield the text of ``manifest.json`` in parts. A part has one artifact or compilation at most."""
    before = "{"
    shared = _shared(run)
    known: Dict[int, str] = {}
    for name, value in _fields(run).items():
        yield f'{before}"{name}":'
        before = ","
        if isinstance(value, tuple) and value:
            for number, each in enumerate(value):
                yield f"{',' if number else '['}{_with_shared(each, shared, known)}"
            yield "]"
        else:
            yield json_text(value)
    yield "}"


def _shared(run: Run) -> Set[int]:
    """Return the ids of the guards and links, and of tuples with them, that several compilations or artifacts share."""
    every = [*(each.guards for each in run.compilations), *(each.links for each in run.artifacts)]
    seen: Set[int] = set()
    shared = {at for at, count in collections.Counter(map(id, every)).items() if count > 1}
    for many in {id(many): many for many in every}.values():
        ids = set(map(id, many))
        shared |= seen & ids
        seen |= ids
    return shared


def _with_shared(value: object, shared: Set[int], known: Dict[int, str]) -> str:
    """Return an artifact, a compilation or another part of a run as JSON; ``known`` caches ``shared`` parts."""
    long = isinstance(getattr(value, "text", None), StoredText)
    if not long and not any(getattr(value, name, ()) for name in _MANY):
        return json_text(value)
    texts = []
    plain: Dict[str, object] = {}  # fields that follow each other are converted together
    for name, item in _fields(value).items():
        of_part = _MANY.get(name)
        if of_part is not None and isinstance(item, tuple):
            text = _of_many(item, of_part, shared, known)
        elif isinstance(item, StoredText):  # a long text, which ``quoted`` converts faster
            text = json_text(item)
        else:
            plain[name] = item
            continue
        if plain:
            texts.append(json_text(plain)[1:-1])
            plain = {}
        texts.append(f'"{name}":{text}')
    if plain:
        texts.append(json_text(plain)[1:-1])
    return f"{{{','.join(texts)}}}"


def _of_many(parts: Tuple[object, ...], of_part: Callable[..., str], shared: Set[int], known: Dict[int, str]) -> str:
    """Return the parts as a list in JSON."""
    if len(known) > _MOST_KNOWN:
        known.clear()
    of_all = known.get(id(parts))
    if of_all is not None:
        return of_all
    texts = []
    for each, text in zip(parts, map(known.get, map(id, parts))):
        if text is None:
            text = _text_of(of_part, each)
            if id(each) in shared:
                known[id(each)] = text
        texts.append(text)
    of_all = f"[{','.join(texts)}]"
    if id(parts) in shared:
        known[id(parts)] = of_all
    return of_all


def _text_of(of_part: Callable[..., str], part: object) -> str:
    try:
        return of_part(part)
    except synchronous(
        LookupError, TypeError, ValueError
    ):  # fields of other types than they should have, from another manifest
        return json_text(part)


def _of_guard(guard: EntryGuard) -> str:
    """Return the same as ``json_text``, in an eighth of the time: a large log has a hundred thousand guards."""
    source = f',"source":{quoted(guard.source)}' if guard.source else ""
    place = "" if guard.place is None else f',"place":[{guard.place[0]},{guard.place[1]}]'
    return f'{{"kind":{quoted(guard.kind)},"text":{quoted(guard.text)}{source}{place}}}'


def _of_link(link: Link) -> str:
    """Return the same as ``json_text``, for the reason of ``_of_guard``."""
    places = ",".join([f"[{source},{line}]" for source, line in link.places])
    names = f',"names":[{",".join(map(quoted, link.names))}]' if link.names else ""
    return f'{{"first":{link.first},"last":{link.last},"places":[{places}]{names}}}'


_MANY: Dict[str, Callable[..., str]] = {"guards": _of_guard, "links": _of_link}
"""Fields with many parts, which compilations or artifacts share: the compilations of a function have equal guards."""

_MOST_KNOWN = 1 << 15


def json_text(value: object) -> str:
    """Return a part of the model, or another such dataclass, as JSON without default values."""
    try:
        return _dumped(value)
    except synchronous(ValueError, TypeError):  # metrics may have numbers that JSON lacks, or other keys than strings
        return _dumped(_plain(value))


def _dumped(value: object) -> str:
    return quoted(str(value)) if isinstance(value, (str, StoredText)) else _ENCODER.encode(value)


def without_texts(run: Run) -> Run:
    """Return the run without the texts of artifacts that have a file of their own: a manifest lies beside them."""
    artifacts = (replace(each, text=None) if each.path is not None else each for each in run.artifacts)
    return replace(run, artifacts=tuple(artifacts))


def from_json(text: str, name: str = file_names.manifest_file()) -> Run:
    """Return the run in a manifest; ``name`` is for messages. Fields that this version lacks are ignored. Raises
    ``ManifestError``."""
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


def _plain_part(value: object) -> object:
    """Convert a part of the model to a dict without default values; anything else to text."""
    return _fields(value) if dataclasses.is_dataclass(value) else str(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain_part, allow_nan=False)


def _fields(value: object) -> Dict[str, object]:
    """Return the fields of a part of the model without default values."""
    found = {}
    kind: type = type(value)
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
    """Return the fields of a dataclass, each with its default (an object that equals nothing if it has none)."""
    return tuple((field.name, _default(field)) for field in dataclasses.fields(kind))


def _default(field: dataclasses.Field[object]) -> object:
    if field.default is not dataclasses.MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else object()


@functools.lru_cache(maxsize=None)
def defaults_of_lists() -> Dict[str, Dict[str, object]]:
    """Return the default values of the parts in each list of a run, which a manifest omits: ``breaks`` has the defaults
    of a graph break, ``recompiles.failed`` the defaults of a guard in the list ``failed`` of a recompilation."""
    found: Dict[str, Dict[str, object]] = {}
    waiting: List[Tuple[str, type]] = [("", Run)]
    for path, kind in waiting:  # grows in the loop
        if path:
            found[path] = {
                field.name: _default(field)
                for field in dataclasses.fields(kind)
                if field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
            }
        # By the text of the annotation: each run needs this table, and evaluating the annotations of all classes takes
        # a tenth of the time to leave a first session.
        for field in dataclasses.fields(kind):
            listed = _LIST.fullmatch(str(field.type))
            item = None if listed is None else vars(sys.modules[kind.__module__]).get(listed[1])
            if isinstance(item, type) and dataclasses.is_dataclass(item):
                waiting.append((f"{path}.{field.name}" if path else field.name, item))
    return found


_LIST = regex(r"Tuple\[(\w+), \.\.\.\]")


def from_data(kind: Type[Kind], value: object) -> Kind:
    """Return what ``json_text`` has written, parsed, as an object of that dataclass. Fields that it lacks are ignored.

    Raises ``ValueError``, ``TypeError``, ``KeyError``, ``AttributeError`` and ``RecursionError`` for anything else.
    """
    return cast(Kind, _build(kind, value))


def _build(kind: Any, value: Any) -> Any:
    """Return ``value``, parsed from JSON, as an object of the type ``kind``, which is one that the model uses."""
    origin = typing.get_origin(kind)
    # ``Optional[X]`` is the only union in the model.
    if origin is Union:
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            return None  # nobody has measured NaN, and it would make any order arbitrary
        return _build(next(each for each in typing.get_args(kind) if each is not type(None)), value)
    if origin is Literal:
        kind = str  # a newer depyf may have written others
    if origin is tuple:
        arguments = typing.get_args(kind)
        # ``Tuple[X, ...]`` is a list of any length, ``Tuple[int, int]`` a pair.
        if arguments[-1:] == (Ellipsis,):
            return tuple(_build(arguments[0], item) for item in value)
        if len(value) != len(arguments):
            raise ValueError(f"{_shown(value)} where there should be {len(arguments)} values")
        return tuple(_build(each, item) for each, item in zip(arguments, value))
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        types = _types_of(kind)
        return kind(**{name: _build(types[name], item) for name, item in value.items() if name in types})
    # Mappings of the model hold plain values only.
    if origin in _MAPPINGS:
        if not isinstance(value, dict):
            raise TypeError(f"{_shown(value)} where there should be an object")
        return value
    if kind in _PLAIN and not isinstance(value, _PLAIN[kind]):
        raise TypeError(f"{_shown(value)} where there should be a {kind.__name__}")
    if kind in (int, float) and isinstance(value, int) and abs(value) > _LARGEST_NUMBER:
        raise ValueError("a number is too large")
    if kind is float and not math.isfinite(value):
        return 0.0
    return value


def _shown(value: object) -> str:
    return repr(value)[:60]


_PLAIN: Dict[object, Tuple[type, ...]] = {str: (str,), bool: (bool,), int: (int,), float: (float, int)}
_LARGEST_NUMBER = 10**18
"""Larger ones are no counts and no times; some are larger than any float, and sums of some can't be printed."""

_MAPPINGS = (dict, collections.abc.Mapping)

_known: Dict[type, Dict[str, object]] = {}


def _types_of(kind: type) -> Dict[str, object]:
    if kind not in _known:
        _known[kind] = typing.get_type_hints(kind)
    return _known[kind]


def dangling(run: Run) -> Optional[str]:
    """Return a message about a dangling reference; None if all references are valid."""
    kinds = {"source": len(run.sources), "function": len(run.functions), "phase": len(run.phases)}
    for kind, index in _references(run):
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < kinds[kind]:
            return f"there is no {kind} {index!r}"
    for each in run.recompiles:
        if not each.failed:
            return f"no guard failed for the recompilation {each.compile_id}"
    return _endless(run)


def _references(run: Run) -> Iterator[Tuple[str, object]]:
    """Yield each kind of reference, with its index."""
    yield from (("source", place[0] if place else None) for place in places_in(run))
    for function in run.functions:
        yield "source", function.source
    functions = [each.resumes for each in run.functions] + [each.function for each in run.compilations]
    functions += [call.function for each in run.compilations for call in each.calls]
    functions += [each.function for each in run.fallbacks]
    yield from (("function", index) for index in functions if index is not None)
    yield from (("function", each.function) for each in run.recompiles)
    yield from (("phase", each.parent) for each in run.phases if each.parent is not None)


def _endless(run: Run) -> Optional[str]:
    """Resume functions that form a cycle have no first function."""
    for start in range(len(run.functions)):
        index, steps = start, 0
        while True:
            following = run.functions[index].resumes
            if following is None or following == index:
                break
            index, steps = following, steps + 1
            if steps > len(run.functions):
                return f"function {start} resumes itself in a circle"
    return None
