"""The arguments of ``depyf sweep``, ``depyf decompile`` and ``depyf verify``."""

from __future__ import annotations

import argparse
import os
import re
from typing import FrozenSet

KINDS = ("module", "class", "function", "lambda")


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the three to the subparsers of the command line."""
    _add_sweep(commands)
    _add_decompile(commands)
    _add_verify(commands)


def _add_sweep(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    sweep = commands.add_parser(
        "sweep",
        help="decompile and verify all code objects of modules or folders, and list what is not proved",
        description="Compiles (never imports) every .py file, decompiles each code object and verifies the result. "
        "Comprehensions are decompiled with the code that contains them. Exit status 1 when not all were proved.",
    )
    sweep.set_defaults(run=_sweep)
    sweep.add_argument("names", nargs="*", metavar="MODULE|FOLDER|FILE")
    sweep.add_argument("--stdlib", action="store_true", help="the whole standard library of this Python")
    sweep.add_argument("--no-tests", action="store_true", help="leave out folders named test or tests")
    sweep.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    sweep.add_argument("--timeout", type=_positive, default=20.0, metavar="S", help="CPU seconds a code object (20)")
    sweep.add_argument("--memory", type=int, default=4096, metavar="MIB", help="for a worker process (4096)")
    sweep.add_argument(
        "--kinds", type=_kinds, default=",".join(KINDS), help="of code objects, with commas (%(default)s)"
    )
    sweep.add_argument(
        "--whole",
        action="store_true",
        help="decompile modules and classes first, and count the code in a proved one as proved (faster; a function "
        "is then proved in its context, and not on its own)",
    )
    sweep.add_argument("--name", type=_regex, metavar="REGEX", help="only code objects whose qualified name matches")
    sweep.add_argument("--sample", type=_positive, default=1.0, metavar="SHARE", help="a share of them, e.g. 0.05")
    sweep.add_argument("--retry", metavar="FILE", help="only what was not proved in the run that wrote this JSON")
    sweep.add_argument("--top", type=int, default=20, metavar="N", help="reasons to show (20; 0 shows all)")
    sweep.add_argument("--list", type=int, default=3, metavar="N", help="examples a reason, smallest first (3; 0: all)")
    sweep.add_argument("--json", metavar="FILE", help="write every row")
    sweep.add_argument("--compare", metavar="FILE", help="show what changed since the run that wrote this JSON")


def _add_decompile(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    decompile = commands.add_parser(
        "decompile",
        help="print the source of a module or of one function, or write a tree of sources",
        description="Decompiles a .pyc file of any Python, an entry of an archive, a .py file (compiled first), all "
        "modules of a folder or archive, or one function or class. Nothing is imported. Exit status 0 when the text "
        "alone is proved to be the same, 1 when not (or only with what a comment at its head lists), 2 when there is "
        "nothing to decompile or it can't be written.",
    )
    decompile.set_defaults(run=_decompile)
    decompile.add_argument(
        "target",
        help="a .pyc or .py file, an entry of an archive (lib.zip/m.pyc), a folder, an archive or a module; with "
        ":qualname or :line for one function or class (heapq:merge, a/b.py:Class.name, c.pyc:12)",
    )
    decompile.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        help="the file to write, for a folder or archive the folder (no -: print)",
    )
    decompile.add_argument("-f", "--force", action="store_true", help="replace existing files (never the input)")
    decompile.add_argument(
        "--unsafe",
        action="store_true",
        help="print the text also where it is known to differ, with the difference in comments (exit status 1; one "
        "target; for code of another Python this is always done)",
    )
    decompile.add_argument(
        "--python",
        metavar="3.N|PATH|none",
        help="the Python that wrote a .pyc file: its version, where the file does not say it, or an interpreter, which "
        "compiles the text for an exact proof (default: python3.N on PATH; none: only this Python compiles)",
    )
    decompile.add_argument("--verdict", action="store_true", help="write the verdict in the last line")
    decompile.add_argument(
        "--dis", "--bytecode", action="store_true", dest="listing", help="print the bytecode and its normal form first"
    )
    decompile.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="for a folder")
    decompile.add_argument(
        "--timeout", type=_positive, default=600.0, metavar="S", help="CPU seconds for a module (600)"
    )
    decompile.add_argument("--memory", type=int, default=4096, metavar="MIB", help="for a module (4096)")


def _add_verify(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    verify = commands.add_parser(
        "verify",
        help="prove that an edited file still does the same as the original, or say where it differs",
        description="Compares each function that both files have, and the statements around them: same bytecode, "
        "equivalent (proved), different (with the first difference), could not be proved, or only in one of them. "
        "Both are compiled at most; nothing is imported or run. Guards of a full_code file are compared as texts, too. "
        "Exit status 0 when all is proved to be the same, 1 when something differs or only one file has it, 3 when "
        "nothing is known to differ but not all could be proved, 2 when there is nothing to compare.",
    )
    verify.set_defaults(run=_verify)
    verify.add_argument(
        "edited",
        metavar="EDITED",
        help="the edited .py file: a file of a dump, an exported file, any module; with :qualname for one function",
    )
    verify.add_argument(
        "original",
        metavar="ORIGINAL",
        help="a .py or .pyc file, an entry of an archive, a module, or a folder (a dump) that has a file of the same "
        "name; with :qualname for one function (heapq:merge, a/b.py:Class.name)",
    )
    verify.add_argument(
        "--python",
        metavar="3.N|PATH",
        help="the Python that wrote a .pyc file, where the file does not say it",
    )
    verify.add_argument("--json", metavar="FILE", help="write every row")
    certificates = verify.add_mutually_exclusive_group()
    certificates.add_argument("--certificate", metavar="FILE", help="write a certificate of the proof, for --check")
    certificates.add_argument(
        "--check",
        metavar="FILE",
        help="check the certificate in FILE, by a second, small checker, in place of the proof",
    )
    verify.add_argument("--timeout", type=_positive, default=60.0, metavar="S", help="CPU seconds for a function (60)")
    verify.add_argument("--memory", type=int, default=4096, metavar="MIB", help="for the comparison (4096)")


def _kinds(text: str) -> FrozenSet[str]:
    found = frozenset(text.split(","))
    if not found <= set(KINDS):
        raise argparse.ArgumentTypeError(f"kinds of code objects are {', '.join(KINDS)}")
    return found


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from error
    return text


def _positive(text: str) -> float:
    number = float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def _sweep(options: argparse.Namespace) -> int:
    from depyf.cli.sweep_and_decompile import sweep  # the decompiler takes longer to import than a small report

    return sweep(options)


def _decompile(options: argparse.Namespace) -> int:
    from depyf.cli.sweep_and_decompile import decompile

    return decompile(options)


def _verify(options: argparse.Namespace) -> int:
    from depyf.cli.verifying import verify

    return verify(options)
