"""``depyf attach``: what may be asked, what is answered, and that the program goes on as without."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest
import torch

from depyf.base.asynchronous import getsignal
from depyf.cli import attaching, main
from depyf.dynamo.capture.hub import capture
from depyf.dynamo.hooks import private_names
from depyf.dynamo.questions.attached import functions
from depyf.running import attach, attached, exchange, injected, other_process
from depyf.running.attach import ask
from depyf.running.other_process import AttachError
from depyf.running.start_hook import FILES

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="attach needs /proc"),
]

PACKAGE = str(Path(attached.__file__).parents[1])


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled_twice() -> Any:
    @torch.compile(backend="eager")
    def scaled(x: torch.Tensor, n: int) -> torch.Tensor:
        return x * n

    scaled(torch.ones(3), 2)
    scaled(torch.ones(3), 5)
    return scaled


def asked(request: Dict[str, object]) -> Dict[str, Any]:
    """What a request gets that is answered by the script of Python 3.14, in this process."""
    folder = exchange.new_folder(os.getpid(), {"protocol": attached.PROTOCOL, **request})
    injected.run(folder, PACKAGE)
    found = exchange.read_json(os.path.join(folder, exchange.ANSWER))
    exchange.remove_folder(folder)
    assert found is not None
    return found


def test_functions_are_listed_with_their_entries_guards_and_limit() -> None:
    compiled_twice()
    found = asked({"code": True})
    functions_found = found["state"]["functions"]
    (function,) = [each for each in functions_found if each["name"].endswith("scaled")]
    name, limit = (function["limits"][0][field] for field in ("name", "value"))
    assert limit == getattr(private_names.DYNAMO_CONFIG.find(), name)
    assert f"(test_attach.py:{function['first_line']}): 2 of {limit} ({name})" in found["text"].replace(
        "tests/cli/", ""
    )
    assert all(any("'x'" in guard for guard in entry["guards"]) for entry in function["entries"])
    assert "def __transformed_code_0_for_scaled(x, n)" in function["code"]
    assert "def __guard_0_for_scaled" in function["code"]
    assert found["state"]["counters"]["frames"]["ok"] >= 2


def test_the_guards_that_failed_last_are_named() -> None:
    compiled_twice()
    last = asked({})["state"]["failed"][0]
    assert last["function"] == "scaled"
    assert last["words"].startswith("n is not 2, which it was compiled for")
    assert "scaled [" in asked({})["why"]


def test_a_compilation_that_runs_is_named_with_its_function_and_no_session_begins_in_it(tmp_path: Path) -> None:
    found: List[Dict[str, Any]] = []

    def backend(graph: Any, _inputs: object) -> Any:
        found.extend((asked({}), asked({"start": str(tmp_path / "dump")})))
        return graph.forward

    def slow(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    torch.compile(slow, backend=backend)(torch.ones(2))
    state = found[0]["state"]
    assert state["compiling"][0]["function"].endswith("slow")
    assert state["phase"].startswith("compiles ")
    assert "backend" in [name for _, _, name in state["stack"]]
    assert found[1]["busy"].startswith("compiles ")
    assert not (tmp_path / "dump").exists()


def test_a_session_begins_and_ends_and_leaves_no_hook(tmp_path: Path) -> None:
    before = dict(private_names.BYTECODE_HOOKS.find())
    assert "error" in asked({"stop": True})
    assert "text" in asked({"start": str(tmp_path / "dump")})
    assert "dumps already" in asked({"start": str(tmp_path / "other")})["error"]
    result = torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    assert "begun by depyf attach" in asked({})["text"]
    assert "text" in asked({"stop": True})
    assert result.tolist() == [2.0, 2.0]
    assert (tmp_path / "dump" / "index.html").exists()
    assert capture.current() is None
    assert dict(private_names.BYTECODE_HOOKS.find()) == before


def test_a_dump_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "can't write to the dump directory" in asked({"start": str(tmp_path / "file" / "dump")})["error"]
    assert "session: none" in asked({})["text"]
    assert "no session was begun" in asked({"stop": True})["error"]
    assert "text" in asked({"start": str(tmp_path / "dump")})
    shutil.rmtree(tmp_path / "dump")
    (tmp_path / "dump").write_text("")
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    assert "can't write to the dump directory" in asked({"stop": True})["error"]


def test_a_failure_becomes_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "compiled_codes", lambda: 1 / 0)
    assert "ZeroDivisionError" in asked({})["error"]
    assert "another version" in asked({"protocol": 99})["error"]


def test_values_are_hidden_where_dumps_hide_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPYF_VALUES", "types")
    word = "".join(chr(ord(letter) + 1) for letter in "rdbqds")

    @torch.compile(backend="eager")
    def tagged(x: torch.Tensor, tag: str) -> torch.Tensor:
        return x + len(tag)

    tagged(torch.ones(3), word)
    tagged(torch.ones(3), "b")
    assert word not in json.dumps(asked({"code": True}))


def test_an_interrupt_while_a_script_runs_reaches_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt("of the program")

    class AtOnce(threading.Thread):
        def start(self) -> None:  # the script has not ended yet
            monkeypatch.setattr(threading, "Thread", thread)
            self.run()

    thread = threading.Thread
    monkeypatch.setattr(threading, "Thread", AtOnce)
    monkeypatch.setattr(attached, "answer_all", interrupted)
    folder = exchange.new_folder(os.getpid(), {})
    before = [getsignal(number) for number in range(signal.SIGRTMIN, signal.SIGRTMAX + 1)]
    try:
        injected.run(folder, PACKAGE)  # Python drops what a script raises: nothing comes here
        with pytest.raises(KeyboardInterrupt, match="of the program"):
            time.sleep(2)
    finally:
        exchange.remove_folder(folder)
    assert [getsignal(number) for number in range(signal.SIGRTMIN, signal.SIGRTMAX + 1)] == before


def test_an_interrupt_while_a_script_is_compiled_reaches_the_program() -> None:
    times: List[str] = []

    def compiled(text: str, names: Dict[str, Any]) -> None:
        times.append(text)
        if len(times) == 1:
            raise KeyboardInterrupt("of the program")
        exec(text, names)

    folder = exchange.new_folder(os.getpid(), {"protocol": attached.PROTOCOL})
    try:
        exec(attach.script_for(folder), {"exec": compiled})
        with pytest.raises(KeyboardInterrupt, match="of the program"):
            time.sleep(2)
        exec(attach.script_for(folder), {})
        found = exchange.read_json(os.path.join(folder, exchange.ANSWER))
        assert found is not None
        innermost = found["state"]["stack"][-1]
        assert innermost[2] == "test_an_interrupt_while_a_script_is_compiled_reaches_the_program"  # not the script
    finally:
        exchange.remove_folder(folder)


def test_a_script_whose_request_was_withdrawn_removes_itself() -> None:
    folder = exchange.new_folder(os.getpid(), {})
    Path(folder, "script.py").write_text("")
    assert exchange.withdraw_request(folder)
    injected.run(folder, PACKAGE)
    assert not os.path.exists(folder)


def test_a_script_whose_folder_is_gone_raises_nothing_in_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    later: List[BaseException] = []
    monkeypatch.setattr(injected, "_raise_later", later.append)
    folder = exchange.new_folder(os.getpid(), {})
    exchange.remove_folder(folder)  # answered, and asked again in a child that was forked meanwhile
    injected.run(folder, PACKAGE)
    assert later == []


def test_a_request_is_taken_once_and_only_from_a_private_folder(tmp_path: Path) -> None:
    folder = exchange.new_folder(1, {"a": 1})
    try:
        os.chmod(folder, 0o755)
        assert exchange.take_request(folder) is None
        os.chmod(folder, 0o700)
        os.symlink(folder, tmp_path / "link")
        assert exchange.take_request(str(tmp_path / "link")) is None
        assert exchange.take_request(folder) == {"a": 1}
        assert exchange.take_request(folder) is None
        assert not exchange.withdraw_request(folder)
    finally:
        exchange.remove_folder(folder)


def test_files_of_others_and_links_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exchange.write_json(str(tmp_path / "own.json"), {"a": 1})
    os.symlink(tmp_path / "own.json", tmp_path / "link.json")
    assert exchange.read_json(str(tmp_path / "own.json")) == {"a": 1}
    assert exchange.read_json(str(tmp_path / "link.json")) is None
    (tmp_path / "own.json").chmod(0o666)
    assert exchange.read_json(str(tmp_path / "own.json")) is None
    (tmp_path / "own.json").chmod(0o600)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert exchange.read_json(str(tmp_path / "own.json")) is None
    assert not exchange.is_private(str(tmp_path))


def test_a_process_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(AttachError, match=r"belongs to .* and you are user 12345"):
        other_process.check(os.getpid())


def test_what_is_no_process_and_no_python_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attach", str(2**22 + 1)]) == 2
    assert "there is no process" in capsys.readouterr().err
    process = os.posix_spawn("/bin/sleep", ["sleep", "20"], {})
    try:
        for _ in range(200):
            if os.path.basename(other_process.executable(process)) != os.path.basename(sys.executable):
                break
            time.sleep(0.01)
        with pytest.raises(AttachError, match="is no Python"):
            other_process.check(process)
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def test_a_tree_has_the_processes_that_run_a_python(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = os.posix_spawn("/bin/true", ["true"], {})  # a zombie: nothing waits for it before the end of this test
    try:
        for _ in range(200):
            if other_process.status_of(ended)["State"].startswith("Z"):
                break
            time.sleep(0.01)
        assert ended not in attach.descendants(os.getpid())
        with pytest.raises(AttachError, match="is ending"):
            other_process.executable(ended)
    finally:
        os.waitpid(ended, 0)
    parents = {1: 0, 2: 1, 3: 1, 4: 3}
    monkeypatch.setattr(os, "listdir", lambda _: [*map(str, parents)])
    monkeypatch.setattr(other_process, "status_of", lambda process: {"PPid": str(parents[process])})
    monkeypatch.setattr(other_process, "is_python", lambda process: process in (2, 4))
    assert attach.descendants(1) == [2, 4]  # the launcher, too, may be no Python


@pytest.fixture
def listening() -> Iterator[int]:
    number = attached.signal_number("SIGRTMIN+7")
    assert number is not None
    attached.listen("SIGRTMIN+7")
    yield number
    signal.signal(number, signal.SIG_DFL)


def in_thread(*arguments: str) -> int:
    """Run the command line in a thread, while the main thread runs Python."""
    status: List[int] = []
    thread = threading.Thread(target=lambda: status.append(main(arguments)))
    thread.start()
    while thread.is_alive():
        time.sleep(0.01)
    return status[0]


@pytest.mark.usefixtures("listening")
def test_a_process_answers_the_signal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    compiled_twice()
    pid, own = str(os.getpid()), ["--signal", "SIGRTMIN+7"]
    assert in_thread("attach", pid, *own) == 0
    assert "scaled (" in capsys.readouterr().out
    assert in_thread("attach", pid, *own, "--why") == 0
    assert "n is not 2" in capsys.readouterr().out
    assert in_thread("attach", pid, *own, "-o", str(tmp_path / "code")) == 0
    assert any("scaled" in each.name for each in (tmp_path / "code").iterdir())
    assert in_thread("attach", pid, *own, "--stop") == 2
    assert "no session was begun" in capsys.readouterr().err
    assert not list(exchange.folders_for(os.getpid()))


def test_a_signal_that_nobody_handles_is_not_sent() -> None:
    with pytest.raises(AttachError, match="has no handler for it"):
        ask(os.getpid(), {}, timeout=1, tell=print, signal_name="SIGRTMIN+8")
    with pytest.raises(AttachError, match="names no signal"):
        ask(os.getpid(), {}, timeout=1, tell=print, signal_name="SIGNONE")


def test_a_handler_of_the_program_stays(capsys: pytest.CaptureFixture[str]) -> None:
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    try:
        attached.listen("SIGUSR2")
        assert signal.getsignal(signal.SIGUSR2) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGUSR2, signal.SIG_DFL)
    attached.listen("often")
    assert "must be 1 or the name of a signal" in capsys.readouterr().err


def answering(state: Dict[str, object]) -> Any:
    """Stands for ``ask``: each process has the functions of ``state``."""
    return lambda process, *_, **__: {"text": "", "why": "", "state": {**state, "pid": process}}


def test_code_of_each_process_is_written_with_and_without_json(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = {"functions": [{"name": "f", "code": "# f"}], "phase": ""}
    monkeypatch.setattr(attaching, "ask", answering(state))
    assert main(["attach", "11", "12", "-o", str(tmp_path)]) == 0
    assert sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*.py")) == ["11/f_0.py", "12/f_0.py"]
    capsys.readouterr()
    assert main(["attach", "11", "--json", "-o", str(tmp_path / "one")]) == 0
    assert json.loads(capsys.readouterr().out)["answer"]["processes"][0]["pid"] == 11
    assert (tmp_path / "one" / "f_0.py").exists()
    assert main(["attach", "11", "--start", str(tmp_path), "--stop"]) == 2


def test_ctrl_c_ends_the_waiting_for_all_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: List[AttachError] = []

    class Interrupted(ThreadPoolExecutor):
        def map(self, function: Any, asked: Any, **_: Any) -> Any:
            self.submit(lambda: ended.append(function(os.getpid())))
            raise KeyboardInterrupt

    monkeypatch.setattr(attaching, "ThreadPoolExecutor", Interrupted)
    monkeypatch.setattr(attach, "_send", lambda *_: False)
    assert main(["attach", str(os.getpid()), "--timeout", "1"]) == 130
    assert "interrupted" in str(ended)
    assert not list(exchange.folders_for(os.getpid()))


@pytest.mark.usefixtures("listening")
def test_a_main_thread_outside_of_python_is_waited_for_and_the_request_is_withdrawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "kill", lambda *_: None)  # as in a long call of C
    with pytest.raises(AttachError, match="has not answered: its main thread"):
        ask(os.getpid(), {}, timeout=0.1, tell=print, signal_name="SIGRTMIN+7")
    assert not list(exchange.folders_for(os.getpid()))


@pytest.mark.usefixtures("listening")
@pytest.mark.filterwarnings("ignore:Dynamo does not know")
def test_dynamo_compiles_nothing_of_the_answer_where_its_callback_is_on() -> None:
    own, number = os.getpid(), int(signal.SIGRTMIN + 7)

    def called() -> None:
        os.kill(own, number)

    @torch.compile(backend="eager")
    def stopping(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        called()
        return x + 1

    frames = private_names.COUNTERS.find()["frames"]
    frames.clear()
    stopping(torch.ones(2))
    before = frames["total"]
    folder = exchange.new_folder(os.getpid(), {"protocol": attached.PROTOCOL})
    torch._dynamo.reset()
    frames.clear()
    stopping(torch.ones(2))
    assert exchange.read_json(os.path.join(folder, exchange.ANSWER)) is not None
    exchange.remove_folder(folder)
    assert frames["total"] <= before + 2  # the handler, and what takes the callback off


def test_requests_that_meet_another_one_or_depyf_at_work_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(attached, "_answered", lambda _request: {"inner": asked({})})
        assert asked({}) == {"inner": {"busy": "answers another request"}}
    own = compile("def work(call): return call()", other_process.__file__, "exec")
    scope: Dict[str, Any] = {}
    exec(own, scope)
    assert scope["work"](lambda: asked({"stop": True})) == {"busy": "runs work of depyf"}
    assert "state" in scope["work"](lambda: asked({}))
    module = compile("found = asked(request)", "/lib/torch/later.py", "exec")
    scope = {"__name__": "torch.later", "asked": asked, "request": {"start": "/never/made"}}
    exec(module, scope)
    assert scope["found"] == {"busy": "imports torch.later"}


def test_a_program_near_its_limit_of_recursion_is_not_asked() -> None:
    def deep(left: int) -> Dict[str, Any]:
        return deep(left - 1) if left else asked({})

    assert deep(sys.getrecursionlimit() - 300) == {"busy": "is near its limit of recursion"}

    def room() -> int:
        try:
            return 1 + room()
        except RecursionError:
            return 0

    def deepest(left: int) -> bool:
        return deepest(left - 1) if left else attached._on_signal(1, None) is None

    for left in (5, 20, 50):
        assert deepest(room() - left)  # raises nothing in the program where there is no room for an answer


def test_a_handler_raises_nothing_of_its_own_and_takes_no_lock_of_threading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "enumerate", lambda: 1 / 0)
    assert "state" in asked({})

    def no_descriptor(_path: str) -> None:
        raise OSError("too many open files")

    monkeypatch.setattr(os, "scandir", no_descriptor)
    attached._on_signal(1, None)


def test_modes_of_the_program_are_not_called() -> None:
    seen: List[object] = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    @torch.compile(backend="eager")
    def with_constant(x: torch.Tensor) -> torch.Tensor:
        return x + torch.tensor([1.0, 2.0])

    with_constant(torch.ones(2))
    with Mode():
        found = asked({"code": True})
    assert seen == []
    assert len(found["state"]["functions"]) == 1


def test_signals_that_end_a_program_or_mean_something_are_not_used() -> None:
    assert (
        attached.signal_number("1") == signal.SIGURG
    )  # ignored where there is no handler: Python removes it at its end
    assert [attached.signal_number(name) for name in ("SIGTERM", "SIGINT", "SIGCHLD", "SIGUSR1+1")] == [None] * 4


def test_a_script_that_may_still_run_stays_when_the_command_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    def sent(_process: int, folder: str, _signal: object) -> bool:
        Path(folder, "script.py").write_text("")
        return True

    monkeypatch.setattr(attach, "_send", sent)
    monkeypatch.setattr(attach, "_wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ask(os.getpid(), {}, timeout=1, tell=print)
    (folder,) = exchange.folders_for(os.getpid())
    assert os.listdir(folder) == ["script.py"]
    exchange.remove_folder(folder)


def test_the_hook_looks_at_each_variable() -> None:
    for name in ("DEPYF_DUMP", "DEPYF_WATCH", "DEPYF_SHADOW", "DEPYF_ATTACH"):
        assert name in FILES["depyf_hook.pth"]
        assert name in FILES["depyf_hook.py"]
