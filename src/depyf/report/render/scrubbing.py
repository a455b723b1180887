"""Remove names of people and machines, paths and secrets from the text of a bug report.

A scrubber replaces the names and texts that it knows, and nothing else. ``Scrubber.left`` finds known names and texts
that are still in a text, so that a file with one is not written.
"""

from __future__ import annotations

import functools
import io
import re
import tokenize
import warnings
from dataclasses import field, fields, is_dataclass
from typing import Dict, Iterator, List, Mapping, Sequence, Tuple, TypeVar

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass, replace
from depyf.decompiler.syntax import parse

T = TypeVar("T")

_HOME = regex(r"(?:/home|/Users|/export/home|[A-Za-z]:\\+Users)[/\\]+([^/\\\s\"'<>:|*?]+)")
_CACHE = regex(r"torchinductor_([A-Za-z0-9][\w.-]*)")
"""PyTorch's folder for what it generates has the user's name."""
_SECRET = regex(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|COOKIE|SESSION|DSN", re.IGNORECASE)
_TEXT_VALUE = regex(r"(?<!\w)([bBrRfFuUtT]{0,2})('(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")")
_LONG_TEXT = regex(r"'''|\"\"\"|\\[\r\n]")
"""What makes a text go over several lines."""
_LINE = regex(r"[^\r\n]+")
_LONE_RETURN = regex(r"\r(?!\n)")
_SUBSCRIPT = regex(r"[\w\])]\[\Z")
_DICT_KEY = regex(r"[{,] ?\Z")
_FLOAT = regex(r"(?<![\w.\]])-?\d+\.\d+(?:e[-+]?\d+)?(?![\w.])")

_COMMON = frozenset(
    {"root", "user", "admin", "test", "ubuntu", "runner", "localhost", "python", "torch", "main", "data"}
)
"""Names that are words of programs, too: replaced in paths only."""

_SETTINGS = frozenset({"true", "false", "none", "null", "auto", "default", "enabled", "disabled", "wayland"})
"""Values of variables that are named like secrets, and are none: TOKENIZERS_PARALLELISM, XDG_SESSION_TYPE."""

_ADDRESS = regex(r"(?<![\w.-])([\w.-]+)@([A-Za-z0-9][A-Za-z0-9.-]*[A-Za-z0-9])")

_SHORTEST = 3
HIDDEN = "…"


@dataclass(frozen=True)
class Scrubber:
    """``names`` are replaced as words, ``texts`` (paths, secrets) wherever they are, the longest first."""

    names: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, text: str) -> str:
        for found in sorted(self.texts, key=len, reverse=True):
            text = text.replace(found, self.texts[found])
        text = _HOME.sub("~", text)
        for name in sorted(self.names, key=len, reverse=True):
            text = self._pattern(name).sub(self.names[name], text)
        return text

    def left(self, text: str) -> List[str]:
        """Return the names and texts to be replaced that are still in ``text``."""
        found = [each for each in self.texts if each in text]
        found += [name for name in self.names if self._pattern(name).search(text)]
        return found + [match.group(0) for match in _HOME.finditer(text)][:1]

    @staticmethod
    def _pattern(name: str) -> re.Pattern[str]:
        return re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", re.IGNORECASE)


def scrubber_for(
    environment: Mapping[str, str], home: str, user: str, host: str, report: Sequence[str], folders: Mapping[str, str]
) -> Scrubber:
    """Return the scrubber for one machine: its home folder, its user, its host, and secrets of its environment.

    ``report`` are the texts of the report, which another machine may have made: users whose home folders or caches they
    name, and hosts at which they have these users (``user@host``), are names, too. ``folders`` are replaced by what
    they are called.
    """
    texts = {folder: name for folder, name in folders.items() if len(folder) > 1}
    if len(home) > 1:
        texts[home] = "~"
    # Secrets: values of variables called ``..._TOKEN`` and alike, except settings and numbers.
    for name, value in environment.items():
        is_word = value.isdecimal() or value.lower() in _COMMON | _SETTINGS
        if _SECRET.search(name) and len(value) >= _SHORTEST + 1 and not is_word:
            texts.setdefault(value, f"<{name}>")
    # A report may be of another machine: names of users come from its home folders, hosts from ``user@host``.
    names = {user: "<user>", host: "<host>", host.partition(".")[0]: "<host>"}
    users = {match[1] for text in report for pattern in (_HOME, _CACHE) for match in pattern.finditer(text)}
    names.update((each, "<user>") for each in sorted(users - set(names)))
    for text in report:
        for match in _ADDRESS.finditer(text):
            if match[1] in names:
                names.setdefault(match[2], "<host>")
                names.setdefault(match[2].partition(".")[0], "<host>")
    kept = {name: to for name, to in names.items() if len(name) >= _SHORTEST and name.lower() not in _COMMON}
    return Scrubber(kept, texts)


def everywhere(scrub: Scrubber, value: T) -> T:
    """Return a part of the model with all of its texts scrubbed."""
    if isinstance(value, str):
        return scrub(value)  # type: ignore[return-value]
    if isinstance(value, tuple):
        return tuple(everywhere(scrub, each) for each in value)  # type: ignore[return-value]
    if isinstance(value, list):
        return [everywhere(scrub, each) for each in value]  # type: ignore[return-value]
    if isinstance(value, dict):
        return {everywhere(scrub, key): everywhere(scrub, each) for key, each in value.items()}  # type: ignore[return-value]
    if is_dataclass(value) and not isinstance(value, type):
        changed: Dict[str, object] = {}
        for each in fields(value):
            changed[each.name] = everywhere(scrub, getattr(value, each.name))
        return replace(value, **changed)
    return value


def texts_in(value: object) -> Iterator[str]:
    """Yield all texts of a part of the model, with the keys of mappings."""
    todo = [value]
    while todo:
        each = todo.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, (tuple, list)):
            todo += each
        elif isinstance(each, dict):
            todo += [*each, *each.values()]
        elif is_dataclass(each) and not isinstance(each, type):
            todo += [getattr(each, one.name) for one in fields(each)]


def without_values(text: str) -> str:
    """Return a message without texts in quotes, but for keys and types, and without fractional numbers."""
    return _FLOAT.sub(HIDDEN, _TEXT_VALUE.sub(_without_text, text))


def _without_text(match: re.Match[str]) -> str:
    """Return the quotes of a text without their content; a subscript or a key of a dict as it is."""
    text, start, end = match.string, match.start(), match.end()
    before, after = text[max(0, start - 2) : start], text[end : end + 1]
    if (after == "]" and _SUBSCRIPT.search(before)) or (after == ":" and _DICT_KEY.search(before)):
        return match.group(0)
    return f"{match.group(1)}'{HIDDEN}'"


def without_literals(source: str) -> str:
    """Return Python source with the contents of its string literals and comments hidden; lines stay where they are.

    A text that can't be read as Python loses the rest of each line from its first quote or ``#`` on, and all lines if a
    literal may go over several lines.
    """
    try:
        spans = _literals(source)
    except synchronous(*_UNREADABLE):
        long = _LONG_TEXT.search(source) is not None
        return _LINE.sub(lambda match: HIDDEN if long else _before_quotes(match.group()), source)
    return _without(spans, source)


def _without(spans: Sequence[_Span], source: str) -> str:
    """Return the source with each span replaced by what hides it."""
    lines = list(io.StringIO(source))  # as the tokens count them: a form feed ends none
    for (first, start), (last, end), hidden in reversed(spans):
        ending = "\n" * (last - first)
        lines[first - 1 : last] = _split(lines[first - 1][:start] + hidden + lines[last - 1][end:], ending)
    return "".join(lines)


def _split(line: str, ending: str) -> List[str]:
    """Return the line, followed by the line ends of the literal, so that later lines keep their numbers."""
    body = line[:-1] if line.endswith("\n") else line
    return [*([body + "\n"] if line.endswith("\n") or ending else [body]), *ending]


def _before_quotes(line: str) -> str:
    """Return a line up to the first quote or ``#``; empty if the line may begin inside of a text."""
    if line.count("'") % 2 or line.count('"') % 2:
        return HIDDEN
    at = min((line.index(each) for each in "'\"#" if each in line), default=len(line))
    return line if at == len(line) else line[:at] + HIDDEN


@functools.lru_cache(maxsize=4096)
def without_literals_of_line(line: str) -> str:
    """Return a single line of a program without its literals; empty if the line may be a part of a text."""
    if len(line) > _LONGEST:
        return HIDDEN
    opened, missing = _brackets(line)
    code = line.strip().rstrip("\\")
    for before in ("", "if x: pass\n", "try: pass\n"):
        for after in ("", " x", "\n pass", "\ndef x(): pass"):
            start, end = before + opened, (f"\n{missing}" if missing else "") + after
            try:
                spans = _literals(start + code + end)
            except synchronous(*_UNREADABLE):
                continue
            hidden = _without(spans, start + code + end)
            return hidden[len(start) : len(hidden) - len(end)] + line.strip()[len(code) :]
    return HIDDEN


def _brackets(line: str) -> Tuple[str, str]:
    """Return the brackets that close in a line without being opened there, and those that its open ones lack."""
    before, open_ = "", ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(line).readline):
            if token.type == tokenize.OP and token.string in _CLOSING:
                open_ += _CLOSING[token.string]
            elif token.type == tokenize.OP and token.string in _OPENING:
                before, open_ = (before, open_[:-1]) if open_ else (_OPENING[token.string] + before, open_)
    except synchronous(*_UNREADABLE):
        pass  # the statement goes on in the next line
    return before, open_[::-1]


_LONGEST = 500
"""Of a line that is read: the time of Python's tokenizer before 3.12 grows with the square of its length."""
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_OPENING = {close: open_ for open_, close in _CLOSING.items()}
_UNREADABLE = (SyntaxError, ValueError, tokenize.TokenError, IndexError, RecursionError, MemoryError)

_Span = Tuple[Tuple[int, int], Tuple[int, int], str]


def _literals(source: str) -> Sequence[_Span]:
    if _LONE_RETURN.search(source):  # ends a line for the parser and not for the tokens
        raise ValueError("lines end in a carriage return")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parse(source)
    found: List[_Span] = []
    depth, begun = 0, (1, 0)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = tokenize.tok_name[token.type]
        if kind in ("FSTRING_START", "TSTRING_START"):
            begun = begun if depth else token.start
            depth += 1
        elif kind in ("FSTRING_END", "TSTRING_END"):
            depth -= 1
            if not depth:
                found.append((begun, token.end, f"'{HIDDEN}'"))
        elif depth:
            pass  # a part of one, which is hidden as a whole
        elif kind == "COMMENT":
            found.append((token.start, token.end, f"# {HIDDEN}"))
        elif kind == "STRING":
            is_bytes = "b" in token.string[:3].lower().partition("'")[0].partition('"')[0]
            found.append((token.start, token.end, "b''" if is_bytes else f"'{HIDDEN}'"))
    return found
