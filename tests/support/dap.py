"""A small client of the Debug Adapter Protocol: what an editor says to debugpy, and a transcript of it for people.

https://microsoft.github.io/debug-adapter-protocol describes the messages. ``Editor`` speaks them over any channel;
``launched`` is the one to an adapter of its own that runs a program, as an editor's "run and debug" does.
"""

from __future__ import annotations

import contextlib
import json
import linecache
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from dataclasses import dataclass
from typing import IO, Any, Deque, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

PATIENCE = 300.0
"""Seconds to wait for a message before giving up; only a program that hangs takes that long."""

Message = Dict[str, Any]


class Channel:
    """Where messages go and come from."""

    def send(self, message: Message) -> None:
        raise NotImplementedError

    def receive(self, timeout: float) -> Message:
        """The next message; raises ``EOFError`` when there will be none, ``queue.Empty`` when none came in time."""
        raise NotImplementedError


class PipeChannel(Channel):
    """Messages with a ``Content-Length`` header over two byte streams."""

    def __init__(self, incoming: IO[bytes], outgoing: IO[bytes]) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._messages: queue.Queue[Optional[Message]] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, message: Message) -> None:
        body = json.dumps(message).encode()
        self._outgoing.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._outgoing.flush()

    def receive(self, timeout: float) -> Message:
        message = self._messages.get(timeout=timeout)
        if message is None:
            raise EOFError("the debug adapter has ended")
        return message

    def _read(self) -> None:
        try:
            while True:
                length = 0
                while True:
                    line = self._incoming.readline()
                    if not line:
                        return
                    if not line.strip():
                        break
                    name, _, value = line.decode().partition(":")
                    if name.lower() == "content-length":
                        length = int(value)
                self._messages.put(json.loads(self._incoming.read(length)))
        finally:
            self._messages.put(None)


@dataclass(frozen=True)
class Stop:
    """Where the program stands: the innermost frame first, as (function, path, line)."""

    reason: str
    thread: int
    thread_name: str
    frames: Sequence[Tuple[str, str, int]]
    frame_id: int

    @property
    def function(self) -> str:
        return self.frames[0][0]

    @property
    def path(self) -> str:
        return self.frames[0][1]

    @property
    def line(self) -> int:
        return self.frames[0][2]


class Editor:
    """The debugger's side of an editor: requests, what they answer, and where the program stops."""

    def __init__(self, channel: Channel, show: Sequence[str] = ()) -> None:
        """``show`` lists folders that the transcript leaves out of paths."""
        self.transcript: List[str] = []
        self.output: List[str] = []
        self._channel = channel
        self._show = [os.path.join(folder, "") for folder in show]
        self._sent = 0
        self._responses: Dict[int, Message] = {}
        self._events: Deque[Message] = deque()

    # The protocol

    def send(self, command: str, arguments: Optional[Mapping[str, Any]] = None) -> int:
        """Send a request; answers its number, which ``response`` takes."""
        self._sent += 1
        self._channel.send(
            {"seq": self._sent, "type": "request", "command": command, "arguments": dict(arguments or {})}
        )
        return self._sent

    def response(self, number: int) -> Any:
        """The body of the answer to that request, which must have succeeded."""
        while number not in self._responses:
            self._receive()
        response = self._responses.pop(number)
        assert response.get("success"), self.story(f"{response.get('command')} failed: {response.get('message')}")
        return response.get("body") or {}

    def request(self, command: str, arguments: Optional[Mapping[str, Any]] = None) -> Any:
        """Send a request and wait for what it answers."""
        return self.response(self.send(command, arguments))

    def event(self, *names: str) -> Message:
        """The next event of one of these names; others that come before it are dropped."""
        while True:
            while self._events:
                event = self._events.popleft()
                if event["event"] in names:
                    return event
                assert event["event"] != "terminated", self.story(f"the program ended: no {' or '.join(names)}")
            self._receive()

    def _receive(self) -> None:
        try:
            message = self._channel.receive(PATIENCE)
        except (EOFError, queue.Empty) as error:
            raise AssertionError(self.story(f"no more messages: {error!r}")) from error
        if message["type"] == "response":
            self._responses[message["request_seq"]] = message
        elif message["type"] == "event" and message["event"] == "output":
            self.output.append(message["body"].get("output", ""))
        elif message["type"] == "event":
            self._events.append(message)

    # What a person does

    def set_breakpoints(self, path: str, lines: Sequence[int]) -> None:
        """Set breakpoints in a file; the debugger has to accept each at exactly its line."""
        self._note(f"set breakpoints in {self._shown(path)}, line {', '.join(map(str, lines))}")
        arguments = {"source": {"path": path}, "breakpoints": [{"line": line} for line in lines]}
        answered = self.request("setBreakpoints", arguments)["breakpoints"]
        accepted = [(each.get("verified"), each.get("line")) for each in answered]
        assert accepted == [(True, line) for line in lines], self.story(f"breakpoints were not accepted: {answered}")

    def resume(self, command: str, stop: Stop) -> None:
        """``continue``, or another command of that kind, from where the program stands."""
        self._note(command)
        self.request(command, {"threadId": stop.thread})

    def step(self, command: str, stop: Stop) -> Stop:
        """``next``, ``stepIn`` or ``stepOut``: where that leads to."""
        self.resume(command, stop)
        return self.stopped("step")

    def stopped(self, *reasons: str) -> Stop:
        """Wait until the program stops (for one of these reasons, if there are some), and look at where.

        debugpy tells of a breakpoint a second time when a value shown there ran code of PyTorch's, and goes on itself.
        """
        event = self.event("stopped")["body"]
        while reasons and event["reason"] not in reasons:
            event = self.event("stopped")["body"]
        thread = event["threadId"]
        names = {each["id"]: each["name"] for each in self.request("threads")["threads"]}
        found = self.request("stackTrace", {"threadId": thread})["stackFrames"]
        frames = [(each["name"], each["source"]["path"], each["line"]) for each in found]
        stop = Stop(event["reason"], thread, names.get(thread, "?"), frames, found[0]["id"])
        linecache.checkcache(stop.path)
        text = linecache.getline(stop.path, stop.line).strip()
        self._note(f"stopped ({stop.reason}, {stop.thread_name}) at {self._shown(stop.path)}:{stop.line}", answer=True)
        self._note(f"    {text}", answer=True)
        callers = [f"{function} ({self._shown(path)}:{line})" for function, path, line in frames]
        for caller in callers:
            self._note(f"    in {caller}", answer=True)
        return stop

    def finished(self) -> int:
        """Wait until the program ends; answers its exit status."""
        status = int(self.event("exited")["body"]["exitCode"])
        self._note(f"ended with exit status {status}", answer=True)
        return status

    def variables(self, stop: Stop) -> Dict[str, str]:
        """The local variables of the innermost frame, as the editor shows them."""
        scopes = self.request("scopes", {"frameId": stop.frame_id})["scopes"]
        local = next(scope for scope in scopes if scope["name"] == "Locals")
        found = self.request("variables", {"variablesReference": local["variablesReference"]})["variables"]
        shown = {each["name"]: " ".join(each["value"].split()) for each in found if each.get("type") is not None}
        for name, value in shown.items():
            if not name.endswith("variables"):  # debugpy's groups: special variables, function variables ...
                self._note(f"    {name} = {value if len(value) <= 100 else value[:97] + '...'}", answer=True)
        return shown

    def evaluate(self, expression: str, stop: Stop) -> str:
        """What the expression is in the innermost frame."""
        arguments = {"expression": expression, "frameId": stop.frame_id, "context": "repl"}
        result = str(self.request("evaluate", arguments)["result"])
        self._note(f"evaluate {expression}")
        self._note(f"    {result}", answer=True)
        return result

    # The transcript

    def _note(self, line: str, answer: bool = False) -> None:
        self.transcript.append(f"{'  ' if answer else '> '}{line}")

    def _shown(self, path: str) -> str:
        for folder in self._show:
            if path.startswith(folder):
                return path[len(folder) :]
        return path

    def story(self, message: str) -> str:
        """The message with the transcript and what the program printed."""
        return "\n".join([message, *self.transcript, "--- output:", "".join(self.output)[-6000:]])


@contextlib.contextmanager
def launched(
    program: Sequence[str],
    *,
    environment: Optional[Mapping[str, str]] = None,
    options: Optional[Mapping[str, Any]] = None,
    show: Sequence[str] = (),
) -> Iterator[Editor]:
    """Start a Python program (its path and arguments) under debugpy; it waits for ``start`` of the editor.

    When this ends, so does the program, and the adapter, whatever they are doing.
    """
    adapter = subprocess.Popen(
        [sys.executable, "-m", "debugpy.adapter"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # a process group that can be ended as a whole
    )
    assert adapter.stdin is not None
    assert adapter.stdout is not None
    editor = Editor(PipeChannel(adapter.stdout, adapter.stdin), show)
    try:
        client = {"clientID": "depyf's tests", "adapterID": "debugpy", "linesStartAt1": True, "pathFormat": "path"}
        editor.request("initialize", client)
        arguments = {
            "request": "launch",
            "program": program[0],
            "args": list(program[1:]),
            "python": [sys.executable],
            "console": "internalConsole",
            "env": dict(environment or {}),
            "cwd": os.getcwd(),
            "subProcess": False,
            **(options or {}),
        }
        editor.send("launch", {key: value for key, value in arguments.items() if value is not None})
        editor.event("initialized")
        yield editor
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(adapter.pid, signal.SIGKILL)
        adapter.wait()
