"""Parse and write JSON of logs and dumps, which may be untrusted. A module of its own: what reads and what writes logs
have nothing else in common.

``json`` of the standard library does both. Where much is to be read, ``use_fast`` has ``msgspec`` do it, if it is
installed (``depyf[fast]``), in a third of the time: importing ``msgspec`` takes longer than reading a small log. The
results are the same (``tests/torch_trace/test_json_text.py``). What ``msgspec`` refuses and ``json`` does not (``NaN``,
lone surrogates) is left to ``json``.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Optional

from depyf.base.asynchronous import synchronous

_read: Callable[[str], object] = json.loads
_write: Optional[Callable[[str], bytes]] = None


def use_fast() -> None:
    """Read and write by ``msgspec`` from now on, if it is installed."""
    global _read, _write
    try:
        import msgspec

        _read, _write = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
    except synchronous(ImportError, AttributeError):  # not installed, or another module of that name
        pass


def parsed(text: str) -> Any:
    """Return the value of a JSON text. Raises ``ValueError``, also for one that is nested too deeply."""
    if _read is not json.loads:
        try:
            return _read(text)
        except synchronous(Exception):
            pass  # json decides, and says what is wrong
    try:
        return json.loads(text)
    except synchronous(RecursionError):
        raise ValueError("nested too deeply") from None


def quoted(text: str) -> str:
    """Return the text as a JSON string: nothing is escaped that need not be."""
    if _write is not None:
        try:
            return _write(text).decode("utf-8")
        except synchronous(ValueError, TypeError):
            pass  # a lone surrogate, or an object of a class derived from str
    return json.encoder.encode_basestring(text)
