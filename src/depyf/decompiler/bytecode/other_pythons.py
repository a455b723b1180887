"""Interpreters of other Pythons, which compile text as that Python does.

One process serves all requests for a Python. It gets a text or a tree, calls ``compile`` on it, and sends back the
``marshal`` bytes, which depyf's own reader reads. It starts isolated (``-I -S -E``): no environment, no site packages,
no module of the working directory. Nothing that it compiles is run.
"""

from __future__ import annotations

import ast
import atexit
import glob
import marshal
import os
import re
import struct
import subprocess
import threading
from typing import IO, Dict, Iterator, Optional, Tuple, Union

from depyf.base.asynchronous import suppressed, synchronous
from depyf.base.late_regex import regex
from depyf.decompiler.bytecode.code import PortableCode
from depyf.decompiler.bytecode.marshal_reader import read_marshal
from depyf.decompiler.bytecode.opcode_table import Version, table_for
from depyf.decompiler.errors import DecompilationError

NONE = "none"
"""The name of no interpreter: text is then not compiled by another Python."""

_SECONDS = 20.0
"""The limit on the time for one text."""

_MOST_FAILURES = 3
"""The limit on texts that end an interpreter: it is not started again after them."""

_LONGEST_ANSWER = 1 << 30
"""The limit on the bytes of one answer."""

_FORMAT = 2
"""The version of marshal that all Pythons read."""

# Sends its facts, then answers requests until its input ends. A tree is (class, fields, position), see ``_as_data``.
_SERVER = """
import marshal, struct, sys
import _ast
given, taken = sys.stdin.buffer, sys.stdout.buffer
def send(status, data):
    taken.write(struct.pack("<BI", status, len(data)) + data)
    taken.flush()
def made(data):
    if type(data) is list:
        return [made(each) for each in data]
    if type(data) is not tuple:
        return data
    if len(data) == 1:
        return data[0]
    name, fields, position = data
    if name == "Index" and sys.version_info >= (3, 9):
        return made(fields["value"])
    cls = getattr(_ast, name)
    fields = {name: made(value) for name, value in fields.items() if name in cls._fields}
    if "type_params" in cls._fields:
        fields.setdefault("type_params", [])
    if name == "Subscript" and sys.version_info < (3, 9):
        fields["slice"] = index(fields["slice"])
    node = cls(**fields)
    for attribute, value in position.items():
        setattr(node, attribute, value)
    return node
def index(node):
    if isinstance(node, (_ast.Slice, _ast.Index, _ast.ExtSlice)):
        return node
    if isinstance(node, _ast.Tuple) and any(isinstance(each, _ast.Slice) for each in node.elts):
        return _ast.ExtSlice(dims=[index(each) for each in node.elts])
    return _ast.Index(value=node)
magic = sys.modules["_frozen_importlib_external"].MAGIC_NUMBER
send(0, marshal.dumps((sys.implementation.name, sys.version_info[:2], magic), 2))
while True:
    head = given.read(4)
    if len(head) < 4:
        break
    source, filename, mode, flags = marshal.loads(given.read(*struct.unpack("<I", head)))
    try:
        source = made(source)
        send(0, marshal.dumps(compile(source, filename, mode, flags, True, 0)))
    except Exception as error:
        send(1, (type(error).__name__ + ": " + str(error)).encode("utf-8", "replace"))
"""


class Interpreter:
    """The interpreter at ``path``, of the Python ``version``; the process starts again after a text that ended it. All
    methods raise ``DecompilationError`` where it does not answer."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._failures = 0
        self._lock = threading.Lock()
        self.version = self._start()

    def _start(self) -> Version:
        """Start the process; return its version."""
        self._owner = os.getpid()
        try:
            self._process = subprocess.Popen(
                [self.path, "-I", "-S", "-E", "-W", "ignore", "-c", _SERVER],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except synchronous(OSError, ValueError) as error:
            raise DecompilationError(f"{self.path} can't be run: {error}") from error
        facts = self._answer(b"", "is no Python: it did not say its version")
        try:
            name, version, magic = _facts_in(facts)
            known = table_for(version).magic
        except synchronous(ValueError, NotImplementedError) as error:
            self.stop()
            raise DecompilationError(f"{self.path} is no Python that depyf knows: {error}") from error
        if name != "cpython" or magic != known:
            self.stop()
            which = f"{name} {version[0]}.{version[1]} with the magic number {magic!r}"
            raise DecompilationError(f"{self.path} is no release of CPython, but {which}")
        return version

    def compile(self, source: Union[str, ast.AST], filename: str, mode: str, flags: int) -> PortableCode:
        """Return what ``compile(source, filename, mode, flags, dont_inherit=True, optimize=0)`` returns there. Raises
        ``SyntaxError`` where that refuses the text."""
        data = (source,) if isinstance(source, str) else _as_data(source)
        try:
            request = marshal.dumps((data, filename, mode, flags), _FORMAT)  # type: ignore[arg-type]
        except synchronous(ValueError) as error:
            raise DecompilationError(f"the tree can't be sent to {self.path}: {error}") from error
        with self._lock:
            if not self.is_running:
                self._start()
            answer = self._answer(struct.pack("<I", len(request)) + request, "ended while it compiled the text")
        try:
            code = read_marshal(answer, self.version)
        except synchronous(ValueError) as error:
            raise DecompilationError(f"{self.path} answered what can't be read: {error}") from error
        if not isinstance(code, PortableCode):
            raise DecompilationError(f"{self.path} answered with a {type(code).__name__}, not a code object")
        return code

    @property
    def is_running(self) -> bool:
        """Whether the process runs and belongs to this process: one that was forked may not use it."""
        return self._owner == os.getpid() and self._process.poll() is None

    def stop(self) -> None:
        """End the process."""
        if self._owner != os.getpid():
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppressed(OSError):  # what was not sent
                if pipe is not None:
                    pipe.close()

    def _answer(self, request: bytes, failure: str) -> bytes:
        """Send ``request`` and return the answer. Raises ``SyntaxError`` for a text that is refused."""
        if self._failures >= _MOST_FAILURES:
            raise DecompilationError(f"{self.path} has failed {self._failures} times")
        # Pipes have no time limit on every system: the end of the process ends the wait.
        timer = threading.Timer(_SECONDS, self._process.kill)
        timer.daemon = True
        timer.start()
        sent, received = self._process.stdin, self._process.stdout
        assert sent is not None
        assert received is not None
        try:
            sent.write(request)
            sent.flush()
            status, size = struct.unpack("<BI", _exactly(received, 5))
            if status > 1 or size > _LONGEST_ANSWER:
                raise EOFError
            answer = _exactly(received, size)
        except synchronous(OSError, EOFError) as error:
            self._failures += 1
            self.stop()
            raise DecompilationError(f"{self.path} {failure}") from error
        except BaseException:  # a signal: the answer that may come belongs to no request
            self.stop()
            raise
        finally:
            timer.cancel()
        if status:
            raise SyntaxError(answer.decode("utf-8", "replace"))
        return answer


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _facts_in(data: bytes) -> Tuple[str, Version, bytes]:
    """Return the name, version and magic number that an interpreter sent. Raises ``ValueError``."""
    value = read_marshal(data, (3, 8))
    if isinstance(value, tuple) and len(value) == 3:
        name, version, magic = value
        if type(name) is str and type(magic) is bytes and type(version) is tuple and len(version) == 2:
            if all(type(number) is int for number in version):
                return name, version, magic
    raise ValueError("it did not say its version")


def _as_data(value: object) -> object:
    """Return a node, or the value of a field, as what marshal writes: ``(class, fields, position)`` for a node, and
    ``(value,)`` for a constant."""
    if isinstance(value, ast.AST):
        fields = {name: _as_data(getattr(value, name)) for name in value._fields if hasattr(value, name)}
        position = {name: getattr(value, name) for name in value._attributes if hasattr(value, name)}
        return type(value).__name__, fields, position
    if isinstance(value, list):
        return [_as_data(each) for each in value]
    return (value,)


# --- which interpreter

_running: Dict[str, Interpreter] = {}
_LOCK = threading.Lock()
_VERSION = regex(r"3\.(\d+)")


def version_named(python: Optional[str]) -> Optional[Version]:
    """Return the version that ``python`` is, such as ``3.8``; ``None`` where it is a path."""
    found = _VERSION.fullmatch(python or "")
    return (3, int(found[1])) if found else None


def interpreter_at(path: str) -> Interpreter:
    """Return the interpreter at ``path``, which is started once for a process. Raises ``DecompilationError`` where it
    does not run."""
    with _LOCK:
        if not _running:
            atexit.register(lambda: list(map(Interpreter.stop, _running.values())))
        known = _running.get(path)
        if known is None:
            known = _running[path] = Interpreter(path)
        return known


def interpreter_of(version: Version, python: Optional[str] = None) -> Optional[Interpreter]:
    """Return the interpreter of ``version`` to use, or ``None`` where there is none.

    ``python``: the path of one, which must be of that version (``DecompilationError``), or ``none``. Otherwise the
    first ``python3.X`` on PATH that runs.
    """
    if python == NONE:
        return None
    if python is not None and version_named(python) is None:
        named = interpreter_at(python)
        if named.version != version:
            theirs, ours = (".".join(map(str, each)) for each in (named.version, version))
            raise DecompilationError(f"{python} is CPython {theirs}, and the code is of CPython {ours}")
        return named
    for path in _on_path(version):
        try:
            found = interpreter_at(path)
        except synchronous(DecompilationError):
            continue
        if found.version == version:
            return found
    return None


def _on_path(version: Version) -> Iterator[str]:
    """Yield the paths of ``python3.X`` on PATH, without folders relative to the working directory. Where one is a shim
    of pyenv, which serves one version only, those of pyenv's versions."""
    name = "python{}.{}".format(*version)
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if not os.path.isabs(folder):
            continue
        path = os.path.join(folder, name + (".exe" if os.name == "nt" else ""))
        if not os.path.isfile(path) or not os.access(path, os.X_OK):
            continue
        if os.path.basename(os.path.normpath(folder)) == "shims":
            parent = glob.escape(os.path.dirname(os.path.normpath(folder)))
            installed = glob.glob(os.path.join(parent, "versions", "{}.{}.*".format(*version), "bin", name))
            if installed:
                numbers = {path: [int(each) for each in re.findall(r"\d+", path)] for path in installed}
                yield from sorted(installed, key=numbers.__getitem__, reverse=True)
                continue
        yield path
