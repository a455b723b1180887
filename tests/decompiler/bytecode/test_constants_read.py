"""The constants that instructions read are those that ``dis`` names."""

from __future__ import annotations

import argparse
import dis

from depyf.decompiler.bytecode.instructions import constants_read


def test_constants_are_those_of_dis() -> None:
    codes = [each.__code__ for each in vars(argparse.ArgumentParser).values() if hasattr(each, "__code__")]
    assert len(codes) > 20
    for code in codes:
        assert constants_read(code) == {each.arg for each in dis.get_instructions(code) if each.opcode in dis.hasconst}
