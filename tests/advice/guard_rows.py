"""Rows for guards: what a recompilation is due to, and what avoids it."""

from __future__ import annotations

import rows_of_objects
import rows_of_several
import rows_of_tensors
import rows_of_values
from rules import guard_rules

RULES = guard_rules()
ROWS = [*rows_of_tensors.ROWS, *rows_of_values.ROWS, *rows_of_objects.ROWS, *rows_of_several.ROWS]
