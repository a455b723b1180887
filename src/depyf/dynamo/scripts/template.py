"""The part of a script that is the same for all graphs, as text: making tensors, running, comparing."""

from __future__ import annotations

TENSOR = '''\
def tensor(shape, strides, dtype, device="cpu", low=None, high=None, requires_grad=False):
    """Random values in a tensor of this shape and these strides."""
    size = 1 + sum((length - 1) * step for length, step in zip(shape, strides)) if 0 not in shape else 0
    if dtype.is_floating_point or dtype.is_complex:
        kind = dtype if dtype.itemsize >= 4 else torch.float32
        values = torch.randn(size, dtype=kind) if low is None else torch.rand(size, dtype=kind) * (high - low) + low
    else:
        values = torch.randint(0 if low is None else low, 2 if high is None else high, (size,))
    return values.to(dtype).to(device).as_strided(shape, strides).requires_grad_(requires_grad)
'''

LOAD = '''\
def load():
    """The values that were saved, by name."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), {file!r})
    return torch.load(path, weights_only=True)
'''

WITH_STATE = '''\
def with_state(module, state):
    """The module with these parameters and buffers."""
    module.load_state_dict(state)
    return module
'''

RUN = '''\
def run(backend):
    """What one call gives (None: eagerly): outputs, gradients, and inputs that it has changed."""
    torch.manual_seed(0)
    graph = Graph()
    function = graph if backend is None else torch.compile(graph, backend=backend{options})
    arguments = inputs()
    versions = [each._version if isinstance(each, torch.Tensor) else 0 for each in arguments]
    {seed}
{call}
    outputs = tree_flatten(outputs)[0]
    results = {{f"output {{number}}": each for number, each in enumerate(outputs)}}
    ends = [each for each in outputs if isinstance(each, torch.Tensor) and each.requires_grad]
    starts = {{
        name: each
        for name, each in zip(NAMES, arguments)
        if isinstance(each, torch.Tensor) and each.requires_grad and each.is_leaf
    }}
    starts.update((name, each) for name, each in graph.named_parameters() if each.requires_grad)
    if ends and starts:
        ones = [torch.ones_like(each) for each in ends]
        gradients = torch.autograd.grad(ends, list(starts.values()), ones, allow_unused=True)
        results.update((f"gradient of {{name}}", each) for name, each in zip(starts, gradients))
    for name, each, version in zip(NAMES, arguments, versions):
        if isinstance(each, torch.Tensor) and (backend is not None or each._version != version):
            results[f"{{name}} afterwards"] = each
    return results
'''

COMPARE = '''\
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 3e-2}


def same(actual, expected, tolerance):
    """Whether two values are the same, and how far they are apart, in words."""
    if not isinstance(expected, torch.Tensor) or not isinstance(actual, torch.Tensor):
        return actual == expected, f"{actual!r} and {expected!r}"
    kind = f"{str(expected.dtype).replace('torch.', '')}{list(expected.shape)}"
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return False, f"{kind}, but {actual.dtype} {list(actual.shape)}"
    if not expected.dtype.is_floating_point:
        different = int((actual != expected).sum())
        return not different, f"{kind}: {different} different" if different else kind
    actual, wanted = actual.detach().double(), expected.detach().double()
    finite = wanted.isfinite()
    if not torch.equal(actual[~finite].nan_to_num(), wanted[~finite].nan_to_num()):
        return False, f"{kind}: NaN or Inf in other places"
    error = float((actual - wanted)[finite].abs().nan_to_num(float("inf")).max()) if finite.any() else 0.0
    largest = float(wanted[finite].abs().max()) if finite.any() else 0.0
    allowed = max(TOLERANCE.get(expected.dtype, 0.1), TOLERANCE[LOWEST])  # by the narrowest type in the graph
    limit = allowed * (largest + 0.1) if tolerance is None else tolerance * largest
    return error <= limit, f"{kind}: largest error {error:.3g}, largest value {largest:.3g}"


def compare(title, actual, expected, tolerance):
    """Print each result; whether all are the same."""
    print(f"{title}:")
    good = True
    for name, each in expected.items():
        equal, words = same(actual.get(name), each, tolerance)
        good = good and equal
        print(f"    {'same  ' if equal else 'DIFFER'}  {name}: {words}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default=BACKEND, help="or MODULE:FUNCTION, or none (%(default)s)")
    parser.add_argument("--tolerance", type=float, default=ALLOWED, help="largest error as a part of the largest value")
    options = parser.parse_args()
    eager = run(None)
    good = True
    if EXPECTED is not None:
        good = compare("eagerly, and when it was captured", eager, EXPECTED, options.tolerance)
    if options.backend == "none":
        if EXPECTED is None:
            print("it runs; its outputs:")
            print("\\n".join(f"    {name}: {same(each, each, None)[1]}" for name, each in eager.items()))
    else:
        backend = options.backend
        if ":" in backend:
            module, name = backend.split(":")
            backend = getattr(importlib.import_module(module), name)
        good = compare(f"compiled with {options.backend}, and eagerly", run(backend), eager, options.tolerance) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
'''
