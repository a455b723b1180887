"""The user's stack in the texts of errors."""

from __future__ import annotations

from depyf.torch_trace.tracebacks import condensed, users_stack

TORCH = "/env/lib/python3.11/site-packages/torch"
OF_TORCH = f"""Traceback (most recent call last):
  File "{TORCH}/_dynamo/convert_frame.py", line 2102, in _compile
    guarded_code = compile_inner(code)
  File "{TORCH}/_dynamo/exc.py", line 723, in unimplemented
    raise Unsupported(
torch._dynamo.exc.TorchRuntimeError: no
"""
OF_A_BACKEND = f"""Traceback (most recent call last):
  File "{TORCH}/_dynamo/convert_frame.py", line 2102, in _compile
    guarded_code = compile_inner(code)
  File "/home/me/train.py", line 5, in my_backend
    return compile_fx(module, inputs)
"""
RAISED_THERE = OF_A_BACKEND + "ValueError: no\n"
RAISED_BELOW = OF_A_BACKEND + f'  File "{TORCH}/_inductor/graph.py", line 9, in call\n    raise E\nE: no\n'
USER_CODE = f"""
from user code:
   File "/home/me/train.py", line 18, in step
    return model(y)
           ^^^^^^^^
  File "{TORCH}/nn/modules/linear.py", line 134, in forward
    return F.linear(input, self.weight)

Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace
"""
FOUND_FROM = """
Found from :
   File "/home/me/train.py", line 16, in lowering
    return torch.sin(x) * 2

"""
STEP = ("/home/me/train.py", 18, "step")
LINEAR = (f"{TORCH}/nn/modules/linear.py", 134, "forward")
BACKEND = ("/home/me/train.py", 5, "my_backend")
LOWERING = ("/home/me/train.py", 16, "lowering")


def test_the_stack_of_an_error_is_the_users() -> None:
    for text, stack in (
        (OF_TORCH + USER_CODE, (STEP, LINEAR)),
        (OF_TORCH, ()),
        (RAISED_THERE, (BACKEND,)),
        (RAISED_BELOW, (BACKEND,)),
        (RAISED_THERE + FOUND_FROM, (LOWERING, BACKEND)),  # both led to it
        (RAISED_BELOW + FOUND_FROM, (LOWERING,)),  # a backend that calls Inductor is not to blame
        (RAISED_BELOW + "While executing %sin\nOriginal traceback:\n" + FOUND_FROM[14:], (LOWERING,)),
        ("", ()),
    ):
        assert users_stack(text) == stack
        assert users_stack(condensed(text)) == stack


def test_what_a_session_keeps_of_an_error_has_no_frames_of_torch_but_the_last() -> None:
    kept = condensed(OF_TORCH + USER_CODE)
    assert "convert_frame.py" not in kept
    assert kept.endswith(USER_CODE)
