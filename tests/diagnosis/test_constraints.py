"""A dimension that was marked dynamic and is specialised: the cause, and the line that does it."""

from __future__ import annotations

import time

from depyf.diagnosis.break_advice import advice_for_fallback
from depyf.diagnosis.constraints import violated_constraint

HEAD = "Constraints violated (L['x'].size()[0])! For more information, run with TORCH_LOGS=\"+dynamic\".\n"
OF_2_13 = f"""ConstraintViolationError: {HEAD}\
  - You marked L['x'].size()[0] as dynamic but your code specialized it to be a constant (7). If you're using ...

User stack:
  File "/home/me/outer.py", line 9, in <module>
    f(x)
  File "/home/me/model.py", line 3, in f
    if x.shape[0] == 7:
       ^^^^^^^^^^^^^^^^
"""
BATCH = "L['self'].batch.size()[1]"
OF_2_7 = (
    f"Constraints violated ({BATCH})!\n"
    f"  - Not all values of RelaxedUnspecConstraint({BATCH}) are valid because {BATCH} was inferred to be a "
    "constant (7).\n"
)
RANGE = (
    f"{HEAD}  - Not all values of RelaxedUnspecConstraint(L['x'].size()[0]) satisfy the generated guard "
    "4 <= L['x'].size()[0] and L['x'].size()[0] <= 9.\n"
)


SIZE = "L['x'].size()[0]"


def test_the_line_that_specialised_is_the_innermost_of_the_users_stack() -> None:
    found = violated_constraint(OF_2_13)
    assert found is not None
    assert found.title == "dimension 0 of x is marked dynamic, and is specialised to 7"
    assert found.location == ("/home/me/model.py", 3)
    assert "specialised to 7 by `if x.shape[0] == 7:`. Change that" in found.advice
    assert advice_for_fallback("error while compiling", OF_2_13) == found.advice


def test_older_pytorchs_have_no_line() -> None:
    found = violated_constraint(OF_2_7)
    assert found is not None
    assert found.title == "dimension 1 of self.batch is marked dynamic, and is specialised to 7"
    assert (found.location, found.code) == (None, "")
    assert "specialised to 7. Change that" in found.advice


def test_a_range_is_said_as_it_was_written() -> None:
    found = violated_constraint(RANGE)
    assert found is not None
    assert found.made == "the code is compiled only for 4 <= x.size()[0] and x.size()[0] <= 9"
    marked = RANGE.replace(
        "RelaxedUnspecConstraint(L['x'].size()[0])", f"{SIZE} = {SIZE} in the specified range 2 <= {SIZE}"
    )
    found = violated_constraint(marked)
    assert found is not None
    assert found.title.startswith(
        "dimension 0 of x is marked dynamic for 2 <= x.size()[0], and the code is compiled only"
    )
    assert "Give each call a range" in found.advice


def test_all_dimensions_are_named() -> None:
    both = HEAD.replace("(L['x'].size()[0])", "(L['x'].size()[0], L['x'].size()[1])")
    found = violated_constraint(OF_2_13.replace(HEAD, both))
    assert found is not None
    assert found.others == ("dimension 1 of x",)
    assert "PyTorch names dimension 1 of x, too." in found.advice


def test_each_dimension_has_its_own_line() -> None:
    second = OF_2_13.partition(HEAD)[2].replace("['x']", "['y']").replace("line 3", "line 8")
    found = violated_constraint(f"{OF_2_13}\n{second}")
    assert found is not None
    assert (found.marked, found.location) == ("dimension 0 of x", ("/home/me/model.py", 3))


def test_texts_of_strangers_cost_no_minutes_and_no_error() -> None:
    start = time.process_time()
    for part in (
        "Not all values of x(a) are valid because ",
        "Not all values of x(a) satisfy ",
        "You marked x as dynamic but your code specialized it to be a constant (",
    ):
        assert violated_constraint(part * 1000) is None
    assert time.process_time() - start < 5.0
    found = violated_constraint(OF_2_13.replace("line 3", f"line {'9' * 5000}"))
    assert found is not None
    assert found.location == ("/home/me/outer.py", 9)


def test_other_errors_are_none() -> None:
    assert violated_constraint("RuntimeError: Constraints violated") is None
    assert advice_for_fallback("error while compiling", "RuntimeError: no") == ""
