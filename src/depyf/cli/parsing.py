"""The parser of the command line: a mistake is reported with the usage of the command it is in, and with close words.

The parsers of all commands are of this class, because ``add_subparsers`` takes the class of the parser it is called on.
"""

from __future__ import annotations

import argparse
import difflib
from typing import Iterable, List, NoReturn, Optional, Sequence

import depyf
from depyf.base.visible import visible

JSON_HELP = "print the answer as JSON (depyf docs json)"
"""Of the option ``--json``, which each command with an answer has."""


class Parser(argparse.ArgumentParser):
    """``argparse.ArgumentParser``, which from Python 3.14 on suggests words, and never for options."""

    def parse_args(self, args: Optional[Sequence[str]] = None, namespace: object = None) -> argparse.Namespace:  # type: ignore[override]
        """Return the options of a command line; exit with status 2 after a message for a mistake in it."""
        words = list(args or ())
        command = next((word for word in words if not word.startswith("-")), None)
        commands = self.commands()
        if command is not None and commands and command not in commands:
            if command in depyf.__all__ and command.islower():
                self.error(f"{command} is no command, but a function: depyf.{command}; depyf docs api explains it")
            self.error(f"there is no command {command!r}{did_you_mean(command, commands)}")
        options, unknown = self.parse_known_args(words)
        if unknown:
            # argparse reports these with the usage of depyf as a whole, which has no options to choose from.
            commands.get(command or "", self).report_unknown(unknown)
        return options

    def commands(self) -> dict[str, Parser]:
        """Return the parser of each command, by its name; empty for a command's own parser."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                return dict(action.choices)
        return {}

    def report_unknown(self, words: List[str]) -> NoReturn:
        """Exit with status 2 after a message about words that this command does not take."""
        options = [each for action in self._actions for each in action.option_strings]
        first = next((word for word in words if word.startswith("-")), None)
        if first is None:
            self.error(f"too many arguments: {' '.join(words)}")
        self.error(f"there is no option {first}{did_you_mean(first.partition('=')[0], options)}")

    def error(self, message: str) -> NoReturn:
        """Exit with status 2 after the usage and ``message``, whose words of the user are made printable."""
        super().error(visible(message))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown ``word``: the closest known word, or all of them."""
    words = list(known)
    found = difflib.get_close_matches(word, words, n=1)
    return f"; did you mean {found[0]}?" if found else f"; there are {', '.join(words)}"
