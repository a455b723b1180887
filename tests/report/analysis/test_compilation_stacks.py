"""A value that a library's line guards stands at the user's line that gave it to the library, where that is known."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import pytest

from depyf.report.analysis.from_events import Files, build_run
from depyf.torch_trace.events import Event
from depyf.torch_trace.provenance import node_stacks_event

USER = "/home/me/net.py"
LIBRARY = "/opt/lib/python3.11/site-packages/torch/nn/modules/linear.py"
SOURCE = """\
class Net(Module):
    def forward(self, x, y):
        h = self.up(y)
        return self.down(h) + self.down(x)
"""
GUARDS = "+- RootGuardManager\n" + "".join(
    f"| +- GuardManager: source={source}, accessed_by=Some\n"
    f"| | +- TENSOR_MATCH: check_tensor({source}, Tensor)  # return F.linear()  # nn/modules/linear.py:134 in forward\n"
    for source in ("L['x']", "L['y']", "L['self']._modules['up'].weight", "G['other']")
)


def read(path: str) -> Optional[str]:
    return SOURCE if path == USER else None


def test_a_guard_of_an_input_of_the_graph_stands_at_the_line_of_the_user_that_came_to_it() -> None:
    meta = {"co_name": "forward", "co_filename": USER, "co_firstlineno": 2, "has_guarded_code": True}
    captured = Event("dynamo_output_graph", "0/0", 0, {}, "", 1.0)
    tracebacks = {
        node: f'  File "{USER}", line {line}, in forward\n    ...\n'
        for node, line in (("l_y_", 3), ("weight", 3), ("l_x_", 4))
    }
    inputs = {"L['y']": "l_y_", "L['self']._modules['up']._parameters['weight']": "weight", "L['x']": "l_x_"}
    events = [
        captured,
        node_stacks_event(captured, "Captured_Graph", tracebacks, inputs=inputs),
        Event("dynamo_cpp_guards_str", "0/0", 0, {}, GUARDS, 2.0),
        Event("compilation_metrics", "0/0", 0, meta, None, 3.0),
    ]
    run = build_run(events, [], files=Files(read=read, names={0: LIBRARY}))
    paths = [each.path for each in run.sources]
    user, library = paths.index(USER), paths.index(LIBRARY)
    places = {guard.source: guard.place for guard in run.compilations[0].guards}
    assert places == {
        "L['x']": (user, 4),
        "L['y']": (user, 3),
        "L['self']._modules['up'].weight": (user, 3),
        "G['other']": (library, 134),
    }


@pytest.mark.torch
def test_with_a_real_graph_the_recompilation_is_at_the_users_line(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    import depyf
    from depyf.report.read.reading import load

    class Block(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

        def forward(self, x: object, y: object) -> object:
            hidden = self.up(y)
            return self.down(hidden) + self.down(x)

    torch._dynamo.reset()
    compiled = torch.compile(Block(), backend="eager")
    with depyf.prepare_debug(str(tmp_path)):
        compiled(torch.ones(2, 4), torch.ones(2, 4))
        compiled(torch.ones(2, 4, requires_grad=True), torch.ones(2, 4))
    torch._dynamo.reset()
    (loaded,) = load([str(tmp_path)])
    source = [each.path for each in loaded.run.sources].index(__file__)
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    up, down = (
        max(at for at, line in enumerate(lines, 1) if line.strip().startswith(text))
        for text in ("hidden = ", "return self.down(")
    )
    places = {guard.source: guard.place for guard in loaded.run.compilations[0].guards if guard.kind == "TENSOR_MATCH"}
    assert (places["L['y']"], places["L['x']"]) == ((source, up), (source, down))
    (recompile,) = loaded.run.recompiles
    assert recompile.place == (source, down)
