"""The user's own files, and the user's line of a stack."""

from __future__ import annotations

from depyf.torch_trace import user_code
from depyf.torch_trace.user_code import innermost_frame, innermost_line, is_library

STEP = ("/home/me/train.py", 18, "step")
MAIN = ("/home/me/train.py", 30, "main")
LINEAR = ("/env/lib/python3.11/site-packages/torch/nn/modules/linear.py", 134, "forward")


def test_frames_of_depyf_and_of_dumped_code_are_not_the_programs_own() -> None:
    for path in (user_code.__file__, "/tmp/dump/__transformed_code_1_for_forward.py", "/d/__compiled_fn_1.kernel_0.py"):
        assert is_library(str(path)), path
    assert not is_library("/home/me/train.py")
    assert not is_library("/home/me/transformed_code.py")


def test_the_innermost_line_is_the_users_own() -> None:
    assert innermost_frame([MAIN, STEP, LINEAR]) == STEP
    assert innermost_line([MAIN, LINEAR]) == MAIN[:2]
    assert innermost_line([LINEAR]) == LINEAR[:2]
    assert innermost_line([]) is None
