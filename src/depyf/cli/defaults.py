"""The table ``[tool.depyf]`` of ``pyproject.toml``: defaults for the options of ``depyf run``."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
from typing import Dict, Mapping, Optional, Tuple, Type

NAMES: Mapping[str, Tuple[str, Type[object]]] = {
    "output": ("output", str),
    "open": ("open", bool),
    "story": ("story", bool),
    "trace": ("trace", bool),
    "profile": ("profile", bool),
    "quiet": ("quiet", bool),
    "follow": ("follow", bool),
    "find-nonfinite": ("find_nonfinite", bool),
    "shadow": ("shadow", int),
    "values": ("values", str),
    "files": ("files", str),
    "stepping": ("no_stepping", bool),
}
"""The keys of the table, the option that each is the default of, and its type."""


_WORDS: Mapping[str, Tuple[object, ...]] = {"values": ("all", "types"), "files": ("read", "all")}
"""The words that a key may have."""


class DefaultsError(Exception):
    """Raised for an invalid table; names the reason."""


def apply_defaults(options: argparse.Namespace) -> None:
    """Set the options that were not given on the command line. Raises ``DefaultsError``."""
    path = _project_file()
    table = {} if path is None else _table(path)
    for key, value in table.items():
        if key not in NAMES:
            raise DefaultsError(f"{path}: [tool.depyf] has no {key!r} (it has {', '.join(NAMES)})")
        name, kind = NAMES[key]
        if not isinstance(value, kind) or (kind is int and (isinstance(value, bool) or int(str(value)) < 1)):
            raise DefaultsError(f"{path}: {key} of [tool.depyf] must be a {kind.__name__}, not {value!r}")
        words = _WORDS.get(key, (value,))
        if value not in words:
            raise DefaultsError(f"{path}: {key} of [tool.depyf] must be {' or '.join(map(repr, words))}, not {value!r}")
        # A relative path is relative to the project; the option of ``stepping`` says the opposite of the key.
        if key == "output" and path is not None:
            value = os.path.join(os.path.dirname(path), str(value))
        if key == "stepping":
            value = not value
        if not getattr(options, name):  # the options only enable something
            setattr(options, name, value)


def _project_file() -> Optional[str]:
    """Return the ``pyproject.toml`` of the current directory or of the nearest one above it."""
    try:
        directory = os.getcwd()
    except OSError:  # it was deleted
        return None
    while True:
        path = os.path.join(directory, "pyproject.toml")
        if os.path.isfile(path):
            return path
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent


def _table(path: str) -> Dict[str, object]:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, ValueError):
        return {}  # other tools report it
    if "tool.depyf" not in text:
        return {}
    names = [name for name in ("tomllib", "tomli") if importlib.util.find_spec(name) is not None]
    if not names:
        raise DefaultsError(f"{path}: [tool.depyf] needs Python 3.11 or tomli to be read (or --no-config)")
    reader = importlib.import_module(names[0])
    try:
        table = reader.loads(text).get("tool", {}).get("depyf", {})
    except (ValueError, AttributeError) as error:
        raise DefaultsError(f"{path}: can't be read ({error})") from error
    if not isinstance(table, dict):
        raise DefaultsError(f"{path}: tool.depyf is not a table")
    return table
