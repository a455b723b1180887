"""Run the blocks of a page of the documentation, and compare what they print with what the page shows.

A ``console`` block has commands behind ``$``, each with its output; a ``python`` block is a part of one program, which
all ``python`` blocks of the page make together. They run in a folder of their own, in the order of the page. A comment
on the line before a block says what else it is:

- ``<!-- file: NAME -->``: the block is written to that file.
- ``<!-- in: PATTERN -->``: its lines stand in one of the files with that name, in this order.
- ``<!-- prints -->``: a ``text`` block, what the ``python`` block before it prints.
- ``<!-- exit status: N -->``: of the last command of the block; 0 without it.
- ``<!-- not run: REASON -->``: the block is only shown.

A line ``...`` stands for any number of lines, and ``...`` in a line for any text. Numbers of seconds, milliseconds and
percent are not compared, and ``/home/me/project`` is the folder in which the page runs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, List, Optional

import warm_python

ROOT = Path(__file__).resolve().parents[2]
HOME = "/home/me/project"
BLOCK = re.compile(r"(?:^<!-- (?P<mark>.*?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
KNOWN = ("file", "in", "prints", "exit status", "not run")
NEXT = "\x1d next block"
TIMEOUT = 300


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, with the first line of its text and the comment before it."""

    language: str
    text: str
    line: int
    kind: str = ""
    value: str = ""


def blocks_of(page: str) -> List[Block]:
    """Return the fenced blocks of a page, with the marks that this module knows."""
    found = []
    for match in BLOCK.finditer(page):
        kind, _, value = (match["mark"] or "").partition(":")
        line = page.count("\n", 0, match.start("text")) + 1
        known = kind.strip() if kind.strip() in KNOWN else ""
        found.append(Block(match["language"], match["text"], line, known, value.strip() if known else ""))
    return found


def unmarked(page: str) -> List[int]:
    """Return the lines of ``bash`` and ``shell`` blocks, which nothing runs, and of marks without a reason."""
    return [
        block.line
        for block in blocks_of(page)
        if (block.language in ("bash", "sh", "shell") and block.kind != "not run")
        or (block.kind == "not run" and not block.value)
    ]


def failures(page: str, folder: Path, files: Optional[Dict[str, Path]] = None) -> List[str]:
    """Run the page in ``folder``, beside links to ``files``; return what is not as the page says."""
    for name, path in (files or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(path)
    blocks = blocks_of(page)
    printed = outputs_of_python([each for each in blocks if _is_program(each)], folder)
    found: List[str] = []
    for block in blocks:
        if block.kind == "file":
            (folder / block.value).write_text(block.text, encoding="utf-8")
        elif block.kind == "in":
            texts = [path.read_text(encoding="utf-8") for path in folder.glob(block.value)]
            if not any(fits("...\n" + block.text.replace("\n", "\n...\n"), text) for text in texts):
                found.append(f"line {block.line}: these lines are not in {block.value} ({len(texts)} files)")
        elif block.language == "console" and block.kind != "not run":
            found += _of_console(block, folder)
        elif _is_program(block):
            output = printed[block.line]
            after = blocks[blocks.index(block) + 1 :][:1]
            if output is None:
                found.append(f"line {block.line}: fails\n{printed[-1]}")
                break
            if after and after[0].kind == "prints" and not fits(after[0].text, _plain(output, folder)):
                found.append(f"line {after[0].line}: prints\n{_plain(output, folder)}")
    return found


def _is_program(block: Block) -> bool:
    return block.language == "python" and not block.kind


def _environment(folder: Path) -> Dict[str, str]:
    others = ("DEPYF_", "TORCH", "PYTEST_", "CI")  # where CI is set, dumps have no values
    kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    return {
        **kept,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "PYTHONPATH": str(ROOT / "src"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / ".cache"),
        "COLUMNS": "100",
        "TERM": "dumb",
    }


def outputs_of_python(blocks: List[Block], folder: Path) -> Dict[int, Optional[str]]:
    """Return what each block prints, by its line; None for one that fails or is not reached, and -1 for the error."""
    if not blocks:
        return {}
    program = folder / "blocks_of_this_page.py"
    end = f"\nprint({NEXT!r}, flush=True)\n"
    program.write_text("".join(block.text + end for block in blocks), encoding="utf-8")
    done = warm_python.run(
        [sys.executable, program.name],
        cwd=folder,
        env=_environment(folder),
        timeout=TIMEOUT,
    )
    parts = done.stdout.split(NEXT + "\n")
    found: Dict[int, Optional[str]] = {}
    for number, block in enumerate(blocks):
        found[block.line] = parts[number] if number < len(parts) - 1 else None
    found[-1] = parts[-1] + done.stderr
    return found


def _of_console(block: Block, folder: Path) -> Iterator[str]:
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE)
    if not commands:
        yield f"line {block.line}: no command"
    for number, (command, expected) in enumerate(commands):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=_environment(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
            stdin=subprocess.DEVNULL,
        )
        wanted = int(block.value) if block.kind == "exit status" and number == len(commands) - 1 else 0
        output = _plain(done.stdout, folder)
        if done.returncode != wanted:
            yield f"line {block.line}: `{command}` has the exit status {done.returncode}\n{output}"
        elif not fits(expected, output):
            yield f"line {block.line}: `{command}` prints\n{output}"


def _plain(text: str, folder: Path) -> str:
    return text.replace(str(folder), HOME)


def fits(shown: str, printed: str) -> bool:
    """Return whether ``printed`` is what a page shows, apart from times and from what ``...`` leaves out."""
    pattern = ""
    for line in _lines(shown):
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(re.escape(part) for part in line.split("...")) + r"\n"
    return re.fullmatch(pattern, "".join(line + "\n" for line in _lines(printed))) is not None


def _lines(text: str) -> List[str]:
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    text = re.sub(r" *\b[\d,.]+ ?(s|ms|us|%)(?=\W|$)", r" N \1", text, flags=re.MULTILINE)
    return text.strip("\n").split("\n")
