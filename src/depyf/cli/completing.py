"""``depyf completion SHELL``: a script that completes commands, options, and files in bash, zsh or fish.

The script is generated from the parser of the command line, so it has every command and option, and pressing Tab does
not run depyf. Only the script for fish contains help texts, quoted.

``shtab`` is no replacement: its version 1.13 completes these shells, but needs Python 3.9 and has the licence MPL-2.0
(CONTRIBUTING.md allows MIT, BSD and Apache); the versions for Python 3.8 do not know fish.
"""

from __future__ import annotations

import argparse
import shlex
from typing import Callable, Dict, Mapping, Sequence

from depyf.base.quick_dataclass import dataclass


@dataclass(frozen=True)
class Completed:
    """A command: its help, options with their help, and the words that each of some options takes."""

    help: str
    options: Mapping[str, str]
    choices: Mapping[str, Sequence[str]]


def add_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], whole: Callable[[], argparse.ArgumentParser]
) -> None:
    """Add the command to the subparsers of the command line; ``whole`` returns the parser that all belong to."""
    completion = commands.add_parser(
        "completion",
        help="print a script that completes depyf's commands and options in bash, zsh or fish",
        description='Prints a script for a shell. bash: eval "$(depyf completion bash)" in ~/.bashrc; zsh: the same in '
        "~/.zshrc, after compinit; fish: depyf completion fish > ~/.config/fish/completions/depyf.fish. "
        "Exit status 0, 2 for another shell.",
    )
    completion.add_argument("shell", choices=tuple(_SCRIPTS))

    def run(options: argparse.Namespace) -> int:
        print(_SCRIPTS[options.shell](completed(whole())), end="")
        return 0

    completion.set_defaults(run=run)


def completed(parser: argparse.ArgumentParser) -> Dict[str, Completed]:
    """Return what can be completed, by command; the empty name is depyf without one."""
    found = {"": _completed(parser, "")}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {each.dest: each.help or "" for each in action._choices_actions}
            for name, command in action.choices.items():
                found[name] = _completed(command, helps.get(name, ""))
    return found


def _completed(parser: argparse.ArgumentParser, text: str) -> Completed:
    options: Dict[str, str] = {}
    choices: Dict[str, Sequence[str]] = {}
    for action in parser._actions:
        if action.help is argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction):
            continue
        for name in action.option_strings:
            options[name] = _first_line(action.help or "")
        if action.choices is not None:
            choices[" ".join(action.option_strings[-1:])] = tuple(map(str, action.choices))
    return Completed(_first_line(text), options, choices)


def _first_line(text: str) -> str:
    return " ".join(text.replace("%%", "%").split())


def _bash(commands: Mapping[str, Completed]) -> str:
    cases = "".join(
        f"        {name})\n{_bash_choices(each)}            words={shlex.quote(' '.join(each.options))} ;;\n"
        for name, each in commands.items()
        if name
    )
    names = shlex.quote(" ".join([*filter(None, commands), *commands[""].options]))
    return f"""# Completion of depyf for bash: eval "$(depyf completion bash)"
_depyf() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" words="" i
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W {names} -- "$current"))
        return
    fi
    case "${{COMP_WORDS[1]}}" in
{cases}    esac
    case "$current" in
        -*) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
        *) local IFS=$'\\n'; COMPREPLY=($(compgen -f -- "$current")) ;;
    esac
}}
complete -o filenames -o bashdefault -F _depyf depyf
"""


def _bash_choices(command: Completed) -> str:
    lines = [
        f'            if [ "$previous" = {shlex.quote(option)} ]; then '
        f'COMPREPLY=($(compgen -W {shlex.quote(" ".join(values))} -- "$current")); return; fi\n'
        for option, values in command.choices.items()
        if option
    ]
    positional = command.choices.get("")
    if positional:
        lines.append(
            f'            if [ "$COMP_CWORD" -eq 2 ]; then '
            f'COMPREPLY=($(compgen -W {shlex.quote(" ".join(positional))} -- "$current")); return; fi\n'
        )
    return "".join(lines)


def _zsh(commands: Mapping[str, Completed]) -> str:
    return f"""# Completion of depyf for zsh: eval "$(depyf completion zsh)", after compinit
autoload -U +X bashcompinit && bashcompinit
{_bash(commands).split(chr(10), 1)[1]}"""


def _fish(commands: Mapping[str, Completed]) -> str:
    lines = ["# Completion of depyf for fish: depyf completion fish > ~/.config/fish/completions/depyf.fish"]
    lines += [
        f"complete -c depyf -n __fish_use_subcommand {_fish_option(*each)}" for each in commands[""].options.items()
    ]
    for name, command in commands.items():
        if name:
            lines.append(f"complete -c depyf -f -n __fish_use_subcommand -a {_quoted(name)} -d {_quoted(command.help)}")
            seen = f"-n {_quoted(f'__fish_seen_subcommand_from {name}')}"
            for option, text in command.options.items():
                values = command.choices.get(option)
                given = f" -x -a {_quoted(' '.join(values))}" if values else ""
                lines.append(f"complete -c depyf {seen} {_fish_option(option, text)}{given}")
            if command.choices.get(""):
                lines.append(f"complete -c depyf -f {seen} -a {_quoted(' '.join(command.choices['']))}")
    return "\n".join(lines) + "\n"


def _fish_option(option: str, text: str) -> str:
    kind = "-l" if option.startswith("--") else "-s"
    return f"{kind} {_quoted(option.lstrip('-'))} -d {_quoted(text)}"


def _quoted(text: str) -> str:
    """Quote for fish, whose single quotes know two escapes."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_SCRIPTS: Mapping[str, Callable[[Mapping[str, Completed]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
