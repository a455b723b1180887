"""The file of a recorded run, and a run that is recorded into it: from the import of torch to the end of the program.

What goes wrong with the file (a full disk) ends the recording with a message, and never the program.
"""

from __future__ import annotations

import io
import os
import platform
from typing import List, Optional, Sequence, Type

from depyf.answers.recorded import LARGEST_FILE, file_name, header_line
from depyf.base.asynchronous import suppressed, synchronous
from depyf.dynamo.hooks import frame_evaluation, torch_names
from depyf.dynamo.hooks.hooked_context import install, uninstall
from depyf.dynamo.hooks.patching import Undo
from depyf.dynamo.hooks.safely import say
from depyf.dynamo.questions.shadow.recorder import Recorder


class RecordedRun:
    """Records what runs into a folder. ``command`` is the program with its arguments; with ``eager`` nothing is
    compiled."""

    recorder_class: Type[Recorder] = Recorder

    def __init__(self, folder: str, command: Sequence[str], *, eager: bool) -> None:
        self._folder = folder
        self._command = list(command)
        self._eager = eager
        self._path = ""
        self._file: Optional[io.TextIOBase] = None
        self._written = 0
        self._problem = ""
        self._recorder = self.recorder_class(self._write)
        self._undo: List[Undo] = []

    def begin(self) -> None:
        """Begin to record, as soon as torch is imported."""
        self._path = os.path.join(self._folder, file_name(torch_names.distributed_rank()))
        try:
            self._file = open(self._path, "w", encoding="utf-8")  # noqa: SIM115
            self._write(
                header_line(
                    command=self._command,
                    eager=self._eager,
                    rank=torch_names.distributed_rank(),
                    python=platform.python_version(),
                    torch=torch_names.torch_version(),
                )
            )
        except synchronous(OSError) as error:
            self._end_with(error.strerror or str(error))
            return
        install(self._undo, "beginning to record", self._recorder.install)
        if not self._undo:
            self._end_with("a profiler, or too many tools like it, run already")

    def begin_compiler(self) -> None:
        """Keep Dynamo out of depyf, and out of the program if it is to run in eager mode, as soon as torch's compiler
        is imported."""
        if self._file is None:
            return
        frame_evaluation.keep_dynamo_out("depyf")
        self._recorder.install_compiler()
        if self._eager:
            # TORCHDYNAMO_DISABLE would make torch.compile return what it was given,
            # so that the calls of compiled functions would not be there to compare.
            install(self._undo, "keeping the program in eager mode", lambda: frame_evaluation.set_stance("force_eager"))

    def end(self) -> None:
        """End, and say what was recorded."""
        ended = self._recorder.frames.was_ended
        uninstall(self._undo, "ending to record")
        if self._file is not None:
            try:
                self._file.close()
            except synchronous(OSError) as error:
                self._problem = error.strerror or str(error)
            self._file = None
        if not self._path:
            say(None, ["depyf shadow: nothing is recorded: the program did not import torch"])
            return
        recorder = self._recorder
        counts = f"{recorder.steps} steps, {recorder.calls} outermost calls"
        lines = [f"depyf shadow: {counts} recorded in {self._path}"]
        if self._problem:
            lines = [f"depyf shadow: {self._path} is not complete: {self._problem}"]
        if ended:
            lines.append("depyf shadow: a profiler of the program has ended the recording early")
        for reason, count in self._recorder.skipped.items():
            lines.append(f"depyf shadow: {count} times nothing was recorded: {reason}")
        say(None, lines)

    def _write(self, line: str) -> None:
        if self._file is None:
            return
        if self._written + len(line) > LARGEST_FILE:
            self._end_with(f"it would be larger than {LARGEST_FILE >> 20} MiB")
            return
        try:
            self._file.write(line)
            self._written += len(line)
        except synchronous(OSError, ValueError) as error:
            self._end_with(getattr(error, "strerror", None) or str(error))

    def _end_with(self, problem: str) -> None:
        """End the recording because of a problem, and say so at once: the program may run for days."""
        file, self._file = self._file, None
        self._problem = problem
        say(None, [f"depyf shadow: recording into {self._path or self._folder} has ended: {problem}"])
        with suppressed(OSError):
            if file is not None:
                file.close()
