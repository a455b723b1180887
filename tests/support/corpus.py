"""The corpus of specimens: the contents of its files, and the observable effects of calling a specimen."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import re
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, Dict, Iterator, List, Optional, Tuple

FOLDER = Path(__file__).resolve().parent.parent / "decompiler" / "corpus"


@dataclass(frozen=True)
class Specimen:
    """One function of a corpus file; ``calls`` are the expressions of the ``# run:`` comments above it."""

    file: str
    name: str
    source: str
    calls: Tuple[str, ...]

    @property
    def label(self) -> str:
        return f"{self.file}-{self.name}"


def corpus_files() -> List[str]:
    """The files that the running Python can compile: a name ending in ``_310`` needs 3.10."""

    def needed(path: Path) -> Tuple[int, int]:
        version = re.search(r"_3(\d+)$", path.stem)
        return (3, int(version.group(1))) if version else (3, 8)

    return [path.stem for path in sorted(FOLDER.glob("*.py")) if sys.version_info >= needed(path)]


def read(file: str) -> str:
    return (FOLDER / f"{file}.py").read_text()


def specimens() -> Iterator[Specimen]:
    """All functions at the top of the corpus files that this Python can compile."""
    for file in corpus_files():
        source = read(file)
        lines = source.splitlines()
        for node in ast.parse(source).body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                text = ast.get_source_segment(source, node)
                assert text is not None
                yield Specimen(file, node.name, text, tuple(_calls_above(lines, node.lineno - 1)))


def _calls_above(lines: List[str], index: int) -> List[str]:
    calls = []
    while index > 0 and lines[index - 1].startswith("# run: "):
        index -= 1
        calls.insert(0, lines[index][len("# run: ") :])
    return calls


def compile_corpus(file: str) -> CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(read(file), f"<corpus {file}>", "exec", dont_inherit=True)


def namespace_of(module: CodeType) -> Dict[str, Any]:
    """Run a module's code and return its globals, with the helpers that ``# run:`` lines may use."""
    namespace: Dict[str, Any] = {"__name__": "corpus.specimen", "__package__": "corpus"}
    exec(module, namespace)
    namespace.update(talk=talk, throw_into=throw_into, close_early=close_early)
    return namespace


def talk(generator: Any, messages: List[Any]) -> Any:
    """Send messages to a generator; returns what it yields and at last what it returns."""
    heard: List[Any] = []
    try:
        heard.extend(generator.send(message) for message in messages)
        generator.close()
    except StopIteration as stop:
        heard.append(("returned", stop.value))
    return heard


def throw_into(generator: Any, error: BaseException) -> Any:
    first = next(generator)
    second = generator.throw(error)
    return first, second, list(generator)


def close_early(generator: Any) -> Any:
    first = next(generator)
    generator.close()
    return first


@dataclass(frozen=True)
class Observation:
    """What the outside sees of one call: its value, or its exception with what that hangs on, and its output."""

    value: Optional[str]
    error: Optional[Tuple[Any, ...]]
    output: str


def observe(call: str, namespace: Dict[str, Any]) -> Observation:
    """Evaluate ``call``; generators are exhausted and coroutines run to their end."""
    output = io.StringIO()
    value: Optional[str] = None
    error: Optional[Tuple[Any, ...]] = None
    with contextlib.redirect_stdout(output), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = _shown(_finished(eval(call, namespace)))
        except Exception as raised:
            error = _described(raised)
    return Observation(value, error, output.getvalue())


def _finished(value: Any) -> Any:
    if inspect.isgenerator(value):
        return _exhausted(value)
    if inspect.iscoroutine(value):
        return asyncio.run(value)
    if inspect.isasyncgen(value):
        return asyncio.run(_collected(value))
    return value


def _exhausted(generator: Any) -> Any:
    yielded = []
    while True:
        try:
            yielded.append(next(generator))
        except StopIteration as stop:
            return yielded, stop.value


async def _collected(generator: Any) -> Any:
    return [value async for value in generator]


def _shown(value: Any) -> str:
    """``repr`` without addresses; sets are small and hold what hashes alike in one process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _described(error: Optional[BaseException]) -> Tuple[Any, ...]:
    if error is None:
        return ()
    return (
        type(error).__name__,
        _shown(error.args),
        error.__suppress_context__,
        _described(error.__cause__),
        _described(error.__context__),
        tuple(_described(inner) for inner in getattr(error, "exceptions", ())),
    )


def code_of_function(module: CodeType, name: str) -> CodeType:
    """The code object of a function at the top of a module. Raises ``KeyError`` when there is none."""
    for constant in module.co_consts:
        if isinstance(constant, CodeType) and constant.co_name == name:
            return constant
    raise KeyError(name)
