"""Memory of modules that Inductor generated, where their buffers are in functions of their own (for CUDA graphs)."""

from __future__ import annotations

from typing import Dict, List

from depyf.report.analysis.ledger import Ledger
from depyf.report.analysis.module_memory import read_module
from depyf.report.model.memory import HeldTensor

WHOLE = """
def call(args):
    a_1, b_1 = args
    args.clear()
    buf0 = empty_strided_cuda((256, ), (1, ), torch.float32)
    triton_poi_0.run(a_1, buf0, 256, stream=stream0)
    buf1 = empty_strided_cuda((512, ), (1, ), torch.float32)
    triton_poi_1.run(buf0, b_1, buf1, 512, stream=stream0)
    del b_1
    del buf0
    buf2 = empty_strided_cuda((16, ), (1, ), torch.float32)
    triton_poi_2.run(buf1, buf2, 16, stream=stream0)
    del buf1
    return (buf2, a_1, )
"""
PARTITIONED = """
def partition_0(args):
    a_1, b_1 = args
    args.clear()
    with torch.cuda._DeviceGuard(0):
        buf0 = empty_strided_cuda((256, ), (1, ), torch.float32)
        triton_poi_0.run(a_1, buf0, 256, stream=stream0)
        buf1 = empty_strided_cuda((512, ), (1, ), torch.float32)
        triton_poi_1.run(buf0, b_1, buf1, 512, stream=stream0)
        del b_1
        del buf0
    return (buf1, a_1, )

def partition_1(args):
    buf1, = args
    args.clear()
    with torch.cuda._DeviceGuard(0):
        buf2 = empty_strided_cuda((16, ), (1, ), torch.float32)
        triton_poi_2.run(buf1, buf2, 16, stream=stream0)
        del buf1
    return (buf2, )


class Runner:
    def __init__(self, partitions):
        self.partitions = partitions

    def call(self, args):
        a_1, b_1 = args
        args.clear()
        partition0_args = [a_1, b_1]
        del b_1
        (buf1, a_1) = self.partitions[0](partition0_args)
        del partition0_args
        partition1_args = [buf1]
        del buf1
        (buf2,) = self.partitions[1](partition1_args)
        del partition1_args
        return (buf2, a_1, )

runner = Runner(partitions=[partition_0, partition_1])
"""


def read(text: str, *, backward: bool = True) -> Ledger:
    inputs = {name: HeldTensor(name, size, 1, True) for name, size in (("a_1", 1024), ("b_1", 2048))}
    ledger = read_module(text, inputs, {}, backward=backward)
    assert ledger is not None
    return ledger


def after_operations(ledger: Ledger) -> List[int]:
    """Return how much is alive after each step, without neighbours that are the same."""
    alive = [each.bytes for each in ledger.moments]
    return [each for at, each in enumerate(alive) if at == 0 or alive[at - 1] != each]


def test_partitions_take_what_the_same_module_takes_in_one_piece() -> None:
    one, parts = read(WHOLE), read(PARTITIONED)
    assert after_operations(one) == [4096, 6144, 3136, 1088]
    assert [each for each in after_operations(parts) if each != 3072] == after_operations(one)
    assert one.moments[one.peak()].bytes == parts.moments[parts.peak()].bytes
    names: Dict[str, int] = {each.name: each.bytes for each in parts.alive_at(parts.peak())}
    assert names == {"b_1": 2048, "buf1": 2048, "a_1": 1024, "buf0": 1024}


def test_what_a_partition_leaves_to_its_end_is_released_there() -> None:
    text = PARTITIONED.replace("        del b_1\n        del buf0\n", "")
    assert after_operations(read(text))[-2:] == [3136, 1088]


def test_partitions_of_another_form_are_not_counted() -> None:
    assert read_module(PARTITIONED.replace("def partition_1(args)", "def other(args)"), {}, {}, backward=False) is None
    assert read_module(PARTITIONED.replace("self.partitions[1](", "partition_1("), {}, {}, backward=False) is None
