"""Drive a Jupyter kernel as a notebook does: cells, their requests for input, and its debugger."""

from __future__ import annotations

import contextlib
import queue
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

import zmq
from dap import PATIENCE, Channel, Message
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager


@dataclass
class CellResult:
    """What a cell did: ``ok`` or ``error``, what it printed (tracebacks, too), its error, and the HTML of its value."""

    status: str = ""
    printed: str = ""
    error: str = ""
    html: str = ""
    prompts: List[str] = field(default_factory=list)


class Notebook(Channel):
    """One kernel. As a channel it carries the messages of the debugger that the kernel has in it."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self._client = client
        self._debugger: List[Message] = []
        self._results: Dict[str, CellResult] = {}
        self._running: Dict[str, bool] = {}

    # Cells

    def start(self, code: str, *, input_allowed: bool = False) -> str:
        """Run a cell, without waiting for it; answers what ``finish`` takes."""
        cell = self._client.execute(code, allow_stdin=input_allowed)
        self._results[cell], self._running[cell] = CellResult(), True
        return cell

    def finish(self, cell: str, answer: Optional[Callable[[str], str]] = None) -> CellResult:
        """Wait until the cell is done; ``answer(what was printed since)`` types what it asks for."""
        result, seen = self._results[cell], 0
        deadline = time.monotonic() + PATIENCE
        while self._running[cell] or not result.status:
            assert time.monotonic() < deadline, f"the cell goes on and on; it printed: {result.printed}"
            asked = self._next(1.0)
            if asked is not None:
                assert answer is not None, f"the cell asks for input: {asked}"
                self._drain()  # what was printed before it asked is on another socket
                result.prompts.append(asked)
                shown, seen = result.printed[seen:], len(result.printed)
                self._client.input(answer(shown))
        return result

    def run(self, code: str, answer: Optional[Callable[[str], str]] = None) -> CellResult:
        """Run a cell to its end."""
        return self.finish(self.start(code, input_allowed=answer is not None), answer)

    # The debugger's messages

    def send(self, message: Message) -> None:
        session = self._client.session
        session.send(self._client.control_channel.socket, session.msg("debug_request", message))

    def receive(self, timeout: float) -> Message:
        deadline = time.monotonic() + timeout
        while not self._debugger:
            if time.monotonic() > deadline:
                raise queue.Empty
            self._next(1.0)
        return self._debugger.pop(0)

    # Sockets

    def _next(self, timeout: float) -> Optional[str]:
        """Take in what comes next, if something comes in time; answers the prompt when it is a question."""
        client = self._client
        channels = {
            channel.socket: channel
            for channel in (client.shell_channel, client.iopub_channel, client.stdin_channel, client.control_channel)
        }
        poller = zmq.Poller()
        for socket in channels:
            poller.register(socket, zmq.POLLIN)
        for socket, _ in poller.poll(timeout * 1000):
            asked = self._take(channels[socket].get_msg(timeout=PATIENCE))
            if asked is not None:
                return asked
        return None

    def _drain(self) -> None:
        channel = self._client.iopub_channel
        while channel.socket.poll(200):
            self._take(channel.get_msg(timeout=PATIENCE))

    def _take(self, message: Mapping[str, Any]) -> Optional[str]:
        kind, content = message["msg_type"], message["content"]
        cell = message["parent_header"].get("msg_id", "")
        result = self._results.get(cell, CellResult())
        if kind in ("debug_reply", "debug_event"):
            self._debugger.append(content)
        elif kind == "stream":
            result.printed += content["text"]
        elif kind == "error":
            result.printed += "\n".join(content["traceback"])
            result.error = f"{content['ename']}: {content['evalue']}"
        elif kind == "execute_result":
            result.html = content["data"].get("text/html", "")
        elif kind == "execute_reply":
            result.status = content["status"]
        elif kind == "status" and content["execution_state"] == "idle" and cell in self._running:
            self._running[cell] = False
        elif kind == "input_request":
            return str(content["prompt"])
        return None


@contextlib.contextmanager
def notebook(environment: Mapping[str, str]) -> Iterator[Notebook]:
    """Start a kernel of this Python; it is killed when this ends."""
    manager = KernelManager()
    manager.start_kernel(env=dict(environment))
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=PATIENCE)
        yield Notebook(client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
