"""``depyf install-hook`` and ``depyf uninstall-hook``."""

from __future__ import annotations

import argparse
from typing import Callable, List

from depyf.messages import error_line
from depyf.running.start_hook import HookError, install_hook, uninstall_hook


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add both to the subparsers of the command line."""
    for name, help_text, run in (
        ("install-hook", "let DEPYF_DUMP and DEPYF_WATCH work in every program of this Python", _install),
        ("uninstall-hook", "remove the files of install-hook", _uninstall),
    ):
        parser = commands.add_parser(
            name,
            help=help_text,
            description="Writes (or removes) three small files in site-packages that make Python check the "
            "environment when it starts: with DEPYF_DUMP=DIR a program and the processes that it starts are dumped "
            "into DIR, with DEPYF_WATCH=1 they are watched. Without these variables nothing is imported. `depyf run "
            "--follow` needs no hook. Exit status 0, or 2 when that can't be done.",
        )
        parser.add_argument("--user", action="store_true", help="in the site-packages of the user")
        parser.set_defaults(run=run)


def _install(options: argparse.Namespace) -> int:
    return _done("written", install_hook, options)


def _uninstall(options: argparse.Namespace) -> int:
    return _done("removed", uninstall_hook, options)


def _done(word: str, change: Callable[..., List[str]], options: argparse.Namespace) -> int:
    try:
        paths = change(user=options.user)
    except HookError as error:
        error_line(f"depyf: {error}")
        return 2
    print("\n".join(f"{word:<8} {path}" for path in paths) or "there is no hook")
    return 0
