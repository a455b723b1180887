"""``depyf completion``: what a shell makes of the script, and that it has every command and option."""

from __future__ import annotations

import argparse
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import List

import pytest

from depyf.cli import _parser, main
from depyf.cli.completing import completed


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def completions(text: str, folder: Path, *words: str) -> List[str]:
    """What bash offers for the last of these words."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    typed = " ".join(f"'{word}'" for word in ("depyf", *words))
    program = f"{text}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words)}; _depyf; printf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    done = subprocess.run([bash, "-c", program], capture_output=True, text=True, cwd=folder, check=True)
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


def test_bash_completes_commands_options_choices_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = script("bash", capsys)
    (tmp_path / "a file.py").write_text("")
    assert completions(text, tmp_path, "rep") == ["report"]
    assert completions(text, tmp_path, "report", "--per") == ["--perfetto"]
    assert completions(text, tmp_path, "diff", "--exit-code", "w") == ["worse"]
    assert completions(text, tmp_path, "completion", "f") == ["fish"]
    assert completions(text, tmp_path, "run", "a") == ["a file.py"]
    assert completions(text, tmp_path, "run", "--nothing") == [""]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_option_is_in_the_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = script(shell, capsys)
    for name, command in completed(_parser()).items():
        for word in (name, *command.options):
            assert word.lstrip("-") in text, (name, word)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_valid(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"there is no {shell} here")
    subprocess.run([found, "-n"], input=script(shell, capsys), text=True, check=True)


def test_fish_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("there is no fish here")
    (tmp_path / "depyf.fish").write_text(script("fish", capsys))

    def completed_by(line: str) -> List[str]:
        program = f"source depyf.fish; complete -C '{line}'"
        environment = {**os.environ, "HOME": str(tmp_path)}
        done = subprocess.run([fish, "-c", program], capture_output=True, text=True, cwd=tmp_path, env=environment)
        return [each.split("\t")[0] for each in done.stdout.splitlines()]

    assert completed_by("depyf rep") == ["report"]
    assert completed_by("depyf report --per") == ["--perfetto"]
    assert completed_by("depyf completion f") == ["fish"]


def test_zsh_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    zsh, pty = shutil.which("zsh"), pytest.importorskip("pty")
    if zsh is None:
        pytest.skip("there is no zsh here")
    (tmp_path / "depyf.zsh").write_text(script("zsh", capsys))
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(tmp_path)
        os.execve(zsh, [zsh, "-f", "-i"], {"TERM": "dumb", "HOME": str(tmp_path), "PATH": os.environ["PATH"]})

    def types(text: str, wanted: str) -> None:
        os.write(terminal, text.encode())
        shown, end = "", time.monotonic() + 30
        while wanted not in shown:
            assert time.monotonic() < end, shown
            if select.select([terminal], [], [], 0.2)[0]:
                shown += os.read(terminal, 65536).decode(errors="replace")

    try:
        types("autoload -Uz compinit; compinit -u; source ./depyf.zsh; print rea''dy\n", "\nready")
        types("depyf ext\t", "extract")
        types("\x15depyf report --per\t", "--perfetto")
        types("\x15depyf completion f\t", "fish")
    finally:
        os.close(terminal)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def test_texts_of_help_run_nothing_in_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    from depyf.cli import completing

    parser = argparse.ArgumentParser(prog="depyf")
    commands = parser.add_subparsers()
    command = commands.add_parser("x", help="it's $(touch a) `touch b` \\' %%")
    command.add_argument("--y", help="'; touch c")
    found = completing.completed(parser)
    fish = completing._SCRIPTS["fish"](found)
    assert r"'it\'s $(touch a) `touch b` \\\' %'" in fish
    assert "touch" not in completing._SCRIPTS["bash"](found)


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["completion", "tcsh"])
    assert raised.value.code == 2
    assert "tcsh" in capsys.readouterr().err
