"""Numbers and shapes that depend on data: which uses ``depyf fix`` knows to be the same in a graph, and which not."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

pytest.importorskip("libcst", reason="libcst is not installed, which depyf fix edits source with")

from edit_cases import edited, function, problem_at, project_of

from depyf.base.quick_dataclass import replace
from depyf.diagnosis.break_advice import BreakCause
from depyf.fixing.captured import may_compare
from depyf.fixing.dynamic import dynamic_compile
from depyf.fixing.edits import NoEdit, applied
from depyf.fixing.items import detach_number
from depyf.fixing.remedies import edits_for
from depyf.report.model.run import Compilation, EntryGuard, Run


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("n = x.abs().max().item()  # n\nreturn x / n", "n = x.abs().max().detach()  # n\nreturn x / n\n"),
        (
            "y = x * 2\nn = float(torch.mean(y))\nreturn n - y * 3 + w",
            "y = x * 2\nn = torch.mean(y).detach()\nreturn n - y * 3 + w\n",
        ),
        ("return (x - x.mean().item()).relu() + w", "return (x - x.mean().detach()).relu() + w\n"),
        (
            "n = x.norm().item()\nz = x * n\nreturn n + x.relu()",
            "n = x.norm().detach()\nz = x * n\nreturn n + x.relu()\n",
        ),
    ],
)
def test_a_number_that_is_used_with_its_own_tensor_alone_stays_a_tensor(
    tmp_path: Path, before: str, after: str
) -> None:
    source = function(before)
    line = next(at for at, text in enumerate(source.splitlines(), 1) if "item()" in text or "float(" in text)
    project = project_of(tmp_path, source)
    assert textwrap.dedent(edited(project, detach_number, problem_at(line)).split("\n", 2)[2]) == after
    probe = applied(detach_number(problem_at(line), project).probe, project.source)["train.py"].decode()
    assert ".is_floating_point() and " in probe
    assert "else 1 / 0)" in probe


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("n = x.max().item()\nreturn x / n, n", "uses the number otherwise"),
        ("n = x.sum().item()\nreturn x * n", "uses the number otherwise"),
        ("return x * float(x.max())", "uses the number otherwise"),
        ("n = x.max().item()\nreturn n / x", "uses the number otherwise"),
        ("n = x.max().item()\nreturn x / (n + 1)", "uses the number otherwise|a number"),
        ("n = x.max().item()\nreturn w / n", "with another tensor than x"),
        ("n = x.max().item()\nreturn x / n + n * w", "with another tensor than x"),
        ("n = x.max().item()\nreturn self.fc(x) / n", "a call of self.fc"),
        ("n = x.max().item()\nif n > 0:\n    return x / n", "uses the number otherwise"),
        ("n = x.max().item()\nreturn x ** n", "uses the number otherwise"),
        ("n = x.max().item()\nn = 2\nreturn x * n", "n has other values"),
        ("n = x.max().item()\nx = x.double()\nreturn x * n", "x is not known to be one tensor"),
        ("n = x.max().item()\nx.data = w\nreturn x * n", "x is not known to be one tensor"),
        ("for y in w:\n    n = y.max().item()\n    z = y * n", "a loop assigns it|not known to be one tensor"),
        ("while w:\n    y = w()\n    n = y.max().item()\n    z = y * n", "a loop assigns it"),
        ("n = x.max().item()\ng = lambda: x * n\nreturn g", "x is not known to be one tensor"),
        ("n = x.argmax().item()\nreturn x * n", "is not known to have the dtype"),
        ("n = x.max(0).item()\nreturn x * n", "is not known to have the dtype"),
        ("n = (x > 0).sum().item()\nreturn x * n", "is not known to have the dtype"),
        ("n = x.any().item()\nreturn x * n", "is not known to have the dtype"),
        ("n = x.item()\nreturn x * n", "is not known to have the dtype"),
        ("n = int(x.max())\nreturn x * n", "is not known to have the dtype"),
        ("n = x.max().item()\nreturn x.add(n)", "uses the number otherwise"),
        ("n = x.max().item()\nx += n\nreturn x", "x is not known to be one tensor"),
        ("n = x.max().item()\nw.append(n)\nreturn x * n", "uses the number otherwise"),
        ("with torch.autocast('cpu'):\n    return x * x.sum().item()", "uses autocast"),
        ("float = g\nreturn x * float(x.sum())", "torch or float is another thing"),
        ("n = x.max().item()\nprint(locals())\nreturn x * n", "may use n"),
    ],
)
def test_a_number_that_anything_else_may_see_stays_a_number(tmp_path: Path, body: str, why: str) -> None:
    source = function(body)
    reads = ("item()", "float(", "int(")
    line = next(at for at, text in enumerate(source.splitlines(), 1) if any(each in text for each in reads))
    with pytest.raises(NoEdit, match=why):
        detach_number(problem_at(line), project_of(tmp_path, source))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("try:\n    return int(x.item())\nexcept ValueError:\n    return 0", "the try at train.py:3"),
        ("try:\n    return inner(x)\nexcept ValueError:\n    return 0", "the try at train.py:3"),
        ("return g(x)\ndef g(x):\n    try:\n        return x.item()\n    except OSError: ...", "the try at train.py:5"),
        ("with contextlib.suppress(ValueError):\n    return x.item()", "the with at train.py:3"),
        ("n = x.item()\nassert n >= 0\nreturn n", "the assert at train.py:4"),
        ("y = x[x > 0]\nassert y.shape[0] > 0\nreturn y", "the assert at train.py:4"),
        ("return x.item()\ng = torch.compile(h)\ndef h(x):\n    assert x.item()", "the assert at train.py:6"),
        ("n = x.item()\nif a:\n    n = x.max().item()\nreturn n", "train.py:5 reads a number"),
        ("n = x.item()\nif a:\n    n = float(w)\nreturn n", "train.py:5 reads a number"),
        ("n = x.item()\nreturn max(n, 1.5)", "train.py:4 uses a number"),
        ("n = x.item()\nm = n + 1\nreturn m or 5", "train.py:5 uses a number"),
        ("return 2 if x.item() else 3", "train.py:3 uses a number"),
        ("n = x.sum().item()\nif n != n:\n    return x\nreturn x * n", "train.py:4 uses a number"),
        ("n = x.sum().item()\nreturn x * (n - n)", "train.py:4 uses a number"),
        ("n = x.sum().item()\nreturn x * (n * 0)", "train.py:4 uses a number"),
        ("n = x.sum().item()\nreturn x * (0 / n)", "train.py:4 uses a number"),
        ("n = x.sum().item()\nreturn x * (n + 1e16 - 1e16)", "train.py:4 uses a number"),
        ("n = x.sum().item()\nm = n + 1e16\nreturn x * (m - 1e16)", "train.py:5 uses a number"),
        ("n = x.sum().item()\nreturn alpha * n * x", "train.py:4 uses a number"),
        ("n = x.sum().item()\nreturn x * self.rate(x, n)", "train.py:4 uses a number"),
        (
            "n = x.sum().item()\nreturn self.fc(x) * n\nself.fc = torch.nn.ReLU()\nself.fc = g",
            "train.py:4 uses a number",
        ),
        ("n = x.sum().item()\nself.n = n\nreturn x", "train.py:4 assigns a value"),
        ("n = x.sum().item()\nn = n * 2\nreturn x * n", "train.py:3 assigns a value"),
        ("n = x.sum().item()\nreturn g(x) * n\ndef g(x):\n    return 0.0", "train.py:4 uses a number"),
        ("n = x.sum().item()\nreturn [x[:n]]", "train.py:4 uses a number"),
        ("n = x.sum().item()\nx = 2.0\nreturn x * n", "train.py:5 uses a number"),
        ("y = h(x)\nreturn x * (y - y)\ndef h(x):\n    return x.item()", "train.py:6 reads a number"),
        ("return x[w]", "how the number is read at train.py:3"),
        ("n = x.sum().item()\nreturn x * (1 / n)", "train.py:4 uses a number"),
        ("n = x.sum().item()\nreturn x * (n + 0)", "train.py:4 uses a number"),
        ("n = x.sum().item()\nreturn {n: x}", "train.py:4 uses a number"),
        ("n = x.mean().item()\nreturn x > n, x.half()", "train.py:4 uses a number"),
        ("n = x.sum().item()\nm = float(w.sum() / w.numel())\nreturn x * n", "train.py:4 reads a number"),
        ("n = x.sum().item()\nm = int(w * len(x))\nreturn x * n", "train.py:4 reads a number"),
        ("n, t = 0, 0\nt = w\nreturn x * (x.sum().item() * t) + float(t)", "reads a number"),
    ],
)
def test_what_is_captured_may_not_raise_where_the_function_would_see_it(tmp_path: Path, body: str, why: str) -> None:
    *_, make = edits_for(problem_at(3, BreakCause.ITEM), project_of(tmp_path, function(body)))
    with pytest.raises(NoEdit, match=why):
        make()


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("g = torch.compile(lambda y: max(y.sum().item(), 1.5))\n", "train.py:6 reads a number"),
        ("other = lambda y: y / max(y.sum().item(), 1.5)\n", "train.py:6 reads a number"),
        ("net.other = [lambda y: y.item()]\n", "train.py:6 reads a number"),
        ("net = Net(other=lambda y: y.item())\n", "train.py:6 reads a number"),
        ("other = torch.compile(h)\ndef h(y):\n    return y.item()\n", "train.py:8 reads a number"),
        ("other['a'] = h\ndef h(y):\n    return y.item()\n", "train.py:8 reads a number"),
        ("other: object = partial(h, 2)\ndef h(y):\n    return y.item()\n", "train.py:8 reads a number"),
        ("class other:\n    def __init__(self, y):\n        self.n = y.item()\n", "train.py:8 reads a number"),
        ("key = lambda y: y.item()\ndef h(y):\n    return y.item()\nother = h(1)\n", ""),
    ],
)
def test_a_setting_holds_for_all_that_a_compiled_function_may_call(tmp_path: Path, source: str, why: str) -> None:
    text = f"import torch\ndef f(x):\n    n = x.sum().item()\n    y = other(x)\n    return x * n\n{source}"
    *_, make = edits_for(problem_at(3, BreakCause.ITEM), project_of(tmp_path, text))
    if not why:
        assert make().changes
        return
    with pytest.raises(NoEdit, match=why):
        make()


def test_what_a_helper_returns_under_another_name_is_used_by_its_caller(tmp_path: Path) -> None:
    text = "import torch\n@torch.compile\ndef f(x):\n    return x.sum().item()\nfast = f\n"
    *_, make = edits_for(problem_at(4, BreakCause.ITEM), project_of(tmp_path, text))
    assert make().changes
    text += "@torch.compile\ndef g(x):\n    v = fast(x)\n    return x if v != v else x * v\n"
    *_, make = edits_for(problem_at(4, BreakCause.ITEM), project_of(tmp_path, text))
    with pytest.raises(NoEdit, match=r"train\.py:4 uses a number"):
        make()
    text = "import torch\n@torch.compile\n@a.b(1)\ndef f(x):\n    return x.sum().item()\n"
    *_, make = edits_for(problem_at(5, BreakCause.ITEM), project_of(tmp_path, text))
    with pytest.raises(NoEdit, match=r"train\.py:5 uses a number"):
        make()


@pytest.mark.parametrize("cause", [BreakCause.ITEM, BreakCause.ITEM_IN_CALL, BreakCause.DYNAMIC_SHAPE])
def test_all_that_a_setting_captures_has_to_be_known(tmp_path: Path, cause: BreakCause) -> None:
    source = function("n = x.sum().item()\ny = x[:w]\nreturn x * n")
    project = replace(project_of(tmp_path, source), found=frozenset({("train.py", 4, cause.value)}))
    *_, make = edits_for(problem_at(3, BreakCause.ITEM), project)
    if cause is BreakCause.DYNAMIC_SHAPE:
        assert make().changes
        return
    with pytest.raises(NoEdit, match=r"how the number is read at train\.py:4 is not known"):
        make()


def test_a_number_that_a_helper_returns_is_not_captured(tmp_path: Path) -> None:
    source = function("y = h(x)\nreturn x * (y - y)\ndef h(x):\n    return x.item()").replace("\n    def h", "\ndef h")
    source = source.replace("        return x.item()", "    return x.item()")
    *_, make = edits_for(problem_at(6, BreakCause.ITEM), project_of(tmp_path, source))
    with pytest.raises(NoEdit, match=r"train.py:6 uses a number"):
        make()


@pytest.mark.parametrize(
    "body",
    [
        "n = x.item()\nm = x.max().item()\nk = max(1, len(a)) or 3\nreturn x * n + (m / 2) * x, m",
        "n, m = 1, float(x.sum())\nreturn x".replace("n, m = 1, ", "m = "),
        "n = x.abs().max().item()\nreturn self.fc(x) / (n + 1e-6)\nself.fc = torch.nn.Linear(2, 2)",
        "y = torch.relu(x)\nn = y.mean().item()\ny -= 1\nz = y.add(n)\nreturn -n * z[:, 0], {'n': n}",
        "n = x.mean().item()\nreturn x * (x > n)",
        "n = float(x.sum())\nk = int(x.shape[0] * 0.5)\nreturn (x - 1) * n + k",
    ],
)
def test_numbers_that_the_run_has_read_and_that_are_used_as_usual_may_be_captured(tmp_path: Path, body: str) -> None:
    texts = enumerate(function(body).splitlines(), 1)
    lines = [line for line, text in texts if "item()" in text or "float(" in text]
    found = frozenset(("train.py", line, BreakCause.ITEM.value) for line in lines)
    project = replace(project_of(tmp_path, function(body)), found=found)
    *_, make = edits_for(problem_at(lines[0], BreakCause.ITEM), project)
    assert make().changes


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("i = torch.nonzero(x > 0).squeeze(1)\ny = x[i].float() * 2\nreturn y.sum(), y, i", ""),
        ("y = x[x > 0]\nz = (y > 1)\nreturn {'z': z, 'n': -y.mean()}", ""),
        ("i = torch.nonzero(x > 0).squeeze()\nreturn x[i]", "train.py:3 uses a tensor"),
        ("y = x[x > 0].squeeze(-1)\nreturn y", "train.py:3 uses a tensor"),
        ("y = x[x > 0]\nreturn y * w", "train.py:4 uses a tensor"),
        ("y = x[x > 0]\nreturn y.max()", "train.py:4 uses a tensor"),
        ("y = x[x > 0]\nif y.shape[0]:\n    return y", "train.py:4 uses a tensor"),
        ("y = x[x > 0]\nreturn torch.cat([y, w])", "train.py:4 uses a tensor"),
        ("y = x[x > 0]\nreturn y.view(-1)", "train.py:4 uses a tensor"),
        ("y = x[x > 0]\nreturn y[0]", "train.py:4 uses a tensor"),
        ("y = x[x > 0]\nself.y = y", "train.py:4 assigns a value"),
        ("y = x[x > 0]\nz = torch.nonzero(w).squeeze()\nreturn y", "train.py:4 uses a tensor"),
        ("y = x[x > 0]\nm = w > 0\nif a:\n    return w[m].view(-1)\nreturn y", "train.py:6 uses a tensor"),
        ("y = x[x > 0]\nz = x[~w].view(2), x[w & y].view(2)\nreturn y", "train.py:4 uses a tensor"),
        ("y = x[x > 0]\nz = x[w.isnan(), 0].view(2)\nreturn y", "train.py:4 uses a tensor"),
        ("y = x[x > 0]\nz = torch.where(x > 0, x, 0).view(2) + x[0].view(2) + x[w].view(2)\nreturn y", ""),
        ("y = x.mine()\nreturn y", "how the shape is made at train.py:3"),
    ],
)
def test_a_shape_that_depends_on_data_is_captured_where_its_uses_are_known(tmp_path: Path, body: str, why: str) -> None:
    (make,) = edits_for(problem_at(3, BreakCause.DYNAMIC_SHAPE), project_of(tmp_path, function(body)))
    if not why:
        assert make().changes
        return
    with pytest.raises(NoEdit, match=why):
        make()


@pytest.mark.parametrize(
    ("body", "source", "is_edited"),
    [
        ("return x * t", "L['t']", True),
        ("return x.relu() * (t + 1), t", "L['t']", True),
        ("return x * (x > t)", "L['t']", True),
        ("return self.w(x) * self.t\nself.w = torch.nn.ReLU()", "L['self'].t", True),
        ("return x * min(t, 1)", "L['t']", False),
        ("return x * t ** 2", "L['t']", False),
        ("return x * max(n, 1.5)", "L['t']", False),
        ("return x * max(n, m)", "L['t']", False),
        ("return x * 2 ** n", "L['t']", False),
        ("n **= m\nreturn x * n", "L['t']", False),
        ("return x.bfloat16() > t", "L['t']", False),
        ("return x ** n", "L['t']", True),
        ("return x ** n", "L['x']", False),
        ("return x * n if n is 7 else x", "L['t']", False),
        ("return x * n if n is not None else x", "L['t']", True),
        ("return x + 1 if n * 0.1 * 10 == m else x", "L['t']", False),
        ("return x + 1 if x.shape[0] * 0.1 * 10.0 == x.shape[0] else x", "L['t']", False),
        ("m = n\nm *= 0.1\nm *= 10.0\nreturn x + 1 if n == m else x", "L['t']", False),
        ("return x + 1 if n * 0.5 > 3 else x * (x * 0.5 + 0.1 > 0)", "L['t']", True),
        ("return x * max(0.5 * len(x), 1)", "L['t']", False),
        ("return x * (1 / t)", "L['t']", False),
        ("return x ** 0.5 * max(x.shape[0], 1)", "L['t']", True),
        ("return x * (1 / (t + 1))", "L['t']", False),
        ("return x * math.sqrt(t)", "L['t']", False),
        ("return x if t != t else x * t", "L['t']", False),
        ("return F.dropout(x, self.t)", "L['self']._modules['a'].t", False),
        ("t = t + 1\nreturn x * t", "L['t']", False),
        ("return x * c['t']", "L['c']['t']", False),
        ("return x * t", "L['g'].__closure__[0].cell_contents", False),
    ],
)
def test_dynamic_makes_no_float_a_part_of_a_graph_that_may_differ_there(
    tmp_path: Path, body: str, source: str, is_edited: bool
) -> None:
    guards = (
        EntryGuard("TENSOR_MATCH", "check_tensor(L['x'])", "L['x']", (0, 3)),
        EntryGuard("EQUALS_MATCH", f"{source} == 0.5", source, (0, 3)),
        EntryGuard("EQUALS_MATCH", "L['self'].eps == 1e-05", "L['self'].eps", None),
    )
    text = function(body).replace("def f(x)", "@torch.compile\ndef f(x, t)")
    run = Run(compilations=(Compilation("0/0", 0, guards=guards),))
    project = replace(project_of(tmp_path, text), run=run)
    problem = replace(problem_at(3), compiled_at=("train.py", 2))
    if is_edited:
        assert "@torch.compile(dynamic=True)" in edited(project, dynamic_compile, problem)
        return
    with pytest.raises(NoEdit, match=r"never NaN or infinite|assigns to t|is a float|for a dynamic number"):
        dynamic_compile(problem, project)


@pytest.mark.parametrize(("dtype", "is_exact"), [("float32", True), ("bfloat16", False), ("float16", False)])
def test_a_number_is_not_compared_with_a_tensor_of_16_bits_in_a_graph(
    tmp_path: Path, dtype: str, is_exact: bool
) -> None:
    guard = EntryGuard("TENSOR_MATCH", f"check_tensor(L['x'], Tensor, torch.{dtype})", "L['x']", (0, 3))
    project = project_of(tmp_path, function("return x"))
    run = Run(compilations=(Compilation("0/0", 0, guards=(guard,)),))
    assert may_compare(project)
    assert may_compare(replace(project, run=run)) == is_exact


def test_asserts_of_types_and_a_finally_do_not_matter_for_what_is_captured(tmp_path: Path) -> None:
    body = "assert x.dim() == 1 and isinstance(x, torch.Tensor), 'a'\ntry:\n    return x.item()\nfinally:\n    pass"
    *_, make = edits_for(problem_at(5, BreakCause.ITEM), project_of(tmp_path, function(body)))
    assert make().changes
