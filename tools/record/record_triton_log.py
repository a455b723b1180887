"""Record a TORCH_TRACE log of Inductor compiling for an NVIDIA GPU, on a machine without one.

    python tools/record/record_triton_log.py OUTPUT.log       # needs the package triton, and a CPU build of PyTorch

The tests of Triton kernels and skipped CUDA graphs read such a log (tests/report/logs). Inputs are fake tensors on
``cuda``; PyTorch's queries of the driver return the values of an H100; the code that Inductor generates is real and
complete, but neither compiled nor run.
"""

from __future__ import annotations

import collections
import contextlib
import glob
import os
import shutil
import sys
import tempfile
from typing import Any, Iterator
from unittest import mock

TRACE = tempfile.mkdtemp()
os.environ["TORCH_TRACE"] = TRACE
os.environ["TORCHINDUCTOR_PROVENANCE"] = "1"

import torch  # noqa: E402
import torch._inductor.async_compile as async_compile  # noqa: E402
import torch._inductor.config as inductor_config  # noqa: E402
import torch._inductor.fx_passes.joint_graph as joint_graph  # noqa: E402
import torch._inductor.fx_passes.post_grad as post_grad  # noqa: E402
import torch._subclasses.fake_tensor as fake_tensor  # noqa: E402
import torch.utils._triton as triton_utils  # noqa: E402
from torch._dynamo.device_interface import get_interface_for_device  # noqa: E402

H100 = {
    "name": "NVIDIA H100",
    "major": 9,
    "minor": 0,
    "multi_processor_count": 132,
    "regs_per_multiprocessor": 65536,
    "max_threads_per_multi_processor": 2048,
    "warp_size": 32,
    "total_memory": 80 * 2**30,
    "gcnArchName": "",
    "shared_memory_per_block": 49152,
    "shared_memory_per_block_optin": 232448,
    "L2_cache_size": 50 * 2**20,
    "max_threads_per_block": 1024,
    "shared_memory_per_multiprocessor": 233472,
}


def attention(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    hidden = torch.nn.functional.gelu(x @ w)
    weights = torch.softmax(hidden, -1)
    return weights.sum(0) * 2


def scaled(x: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    clipped = factor.clamp(min=1)
    return x.cos() * clipped


@contextlib.contextmanager
def pretended_gpu() -> Iterator[None]:
    """Answer PyTorch's queries of the device without one."""
    properties = collections.namedtuple("Properties", H100)(**H100)  # type: ignore[misc]
    interface: Any = get_interface_for_device("cuda")
    torch._C._cuda_getCurrentRawStream = lambda index: 0  # type: ignore[attr-defined]
    torch._C._cuda_cudaCachingAllocator_is_enabled = lambda: True  # type: ignore[attr-defined]
    nothing = lambda *_, **__: None  # noqa: E731
    answers = [
        (torch.cuda, "is_available", lambda: True),
        (torch.cuda, "device_count", lambda: 1),
        (torch.cuda, "current_device", lambda: 0),
        (torch.cuda, "get_device_properties", lambda *_: properties),
        (torch.cuda, "get_device_capability", lambda *_: (9, 0)),
        (torch.cuda, "synchronize", nothing),
        (torch.cuda, "is_initialized", lambda: False),
        (torch.cuda, "_lazy_init", nothing),
        (torch.cuda, "_exchange_device", lambda *_: 0),
        (torch.cuda, "_maybe_exchange_device", lambda *_: 0),
        (torch.cuda, "get_rng_state", lambda *_: torch.zeros(16, dtype=torch.uint8)),
        (torch.cuda, "set_rng_state", nothing),
        (interface, "is_available", staticmethod(lambda: True)),
        (interface, "current_device", staticmethod(lambda: 0)),
        (interface, "get_device_properties", staticmethod(lambda *_: properties)),
        (interface, "get_raw_stream", staticmethod(lambda _: 0)),
        (interface, "get_compute_capability", staticmethod(lambda *_: 90)),
        (interface.Worker, "get_device_properties", staticmethod(lambda *_: properties)),
        (interface.Worker, "current_device", staticmethod(lambda *_: 0)),
        (async_compile.AsyncCompile, "triton", nothing),
        (async_compile.AsyncCompile, "wait", nothing),
        (triton_utils, "triton_hash_with_backend", lambda *_: "0" * 64),
        (joint_graph, "lazy_init", nothing),  # they trace patterns on the device
        (post_grad, "lazy_init", nothing),
        (fake_tensor, "init_gpu_context", nothing),
    ]
    with contextlib.ExitStack() as stack:
        for owner, name, answer in answers:
            stack.enter_context(mock.patch.object(owner, name, answer))
        yield


def main() -> None:
    inductor_config.force_disable_caches = True
    inductor_config.compile_threads = 1
    inductor_config.graph_partition = False  # which would leave the CPU out, and use CUDA graphs for the rest
    with pretended_gpu(), fake_tensor.FakeTensorMode(allow_non_fake_inputs=True):
        x, w = torch.empty(64, 32, device="cuda"), torch.empty(32, 16, device="cuda")
        for function, arguments in ((attention, (x, w)), (scaled, (x, torch.empty(())))):
            with contextlib.suppress(Exception):  # the kernels can't run
                torch.compile(function, mode="reduce-overhead")(*arguments)
    logs = glob.glob(os.path.join(TRACE, "*.log"))
    shutil.copy(logs[0], sys.argv[1])
    print(f"{sys.argv[1]}: {os.path.getsize(sys.argv[1])} bytes")


if __name__ == "__main__":
    main()
