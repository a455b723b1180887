"""Source back to a code object that can replace a given one.

``scaffold`` adds the surroundings that the text needs, ``restoring`` restores what text can't express. May import
``printing`` and the modules of ``source`` itself. Start reading at ``to_code.py``.
"""
