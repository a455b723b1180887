"""When code may run from the files of a session's dump."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, Callable, List

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

from torch_versions import needs_stances  # noqa: E402

import depyf  # noqa: E402
from depyf.dynamo.hooks import private_names, torch_names  # noqa: E402
from depyf.dynamo.store import plain_names  # noqa: E402
from depyf.report.read.reading import load  # noqa: E402


def test_no_code_runs_from_a_name_that_pytorch_can_not_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.utils._traceback import CapturedTraceback

    directory = os.path.join(tmp_path, os.fsdecode(b"no link to \xff"))
    try:
        os.mkdir(directory)
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    shown: List[int] = []

    @torch._dynamo.disable  # type: ignore[misc, untyped-decorator, unused-ignore]
    def show(x: Any) -> Any:
        shown.append(len(CapturedTraceback.extract().summary()))
        return x

    def no_room(*_arguments: object, **_options: object) -> str:
        raise OSError(errno.ENOSPC, "no room for temporary files")

    monkeypatch.setattr(plain_names.tempfile, "mkdtemp", no_room)
    with depyf.prepare_debug(directory) as opened:
        result = torch.compile(lambda x: show(x + 1) @ torch.ones(3), backend="aot_eager")(torch.ones(3))
    assert (result, len(shown)) == (6, 1)
    assert opened.session is not None
    assert not opened.session.stepping
    assert any("Forward_graph" in name for name in os.listdir(directory)), "the files are written"


def test_without_a_way_to_keep_dynamo_out_no_code_runs_from_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: List[str] = []

    def backend(module: Any, _inputs: object) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            places.append(os.path.dirname(type(module).forward.__code__.co_filename))
            return module.forward(*arguments)

        return call

    def run() -> None:
        torch._dynamo.reset()
        with depyf.prepare_debug(tmp_path):
            torch.compile(lambda x: x + 1, backend=backend)(torch.ones(3))

    run()
    missing = {private_names.SKIP_CODE, private_names.SKIP_CODE_IN_C}
    find = torch_names.PrivateName.find
    monkeypatch.setattr(torch_names.PrivateName, "find", lambda name: None if name in missing else find(name))
    run()
    assert [place == str(tmp_path) for place in places] == [True, False]


def shrinks(x: Any) -> Any:
    return x[1:]


def prints(x: Any) -> Any:
    print("once")
    return x + 1


@needs_stances
def test_what_a_question_compiles_is_not_recorded(tmp_path: Path) -> None:
    compiled = torch.compile(shrinks, backend="eager")
    whole = torch.compile(prints, backend="eager", fullgraph=True)
    with depyf.prepare_debug(tmp_path):
        compiled(torch.ones(3))
        assert depyf.compare(compiled, torch.ones(3)).entry is not None
        with pytest.raises(torch._dynamo.exc.Unsupported):
            whole(torch.ones(2))
        assert "this call raises Unsupported" in str(depyf.why(whole, torch.ones(2)))
    (loaded,) = load([str(tmp_path)])
    assert len(loaded.run.compilations) == 2
    assert [each.name for each in loaded.run.functions] == ["shrinks", "prints"]
