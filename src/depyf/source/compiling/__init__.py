"""Source back to a code object that can stand in for a given one.

``scaffold`` gives the text the surroundings that it needs, ``restoring`` puts back what text can't say. Start reading
at ``to_code.py``.
"""
