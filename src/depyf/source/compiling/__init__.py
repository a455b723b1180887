"""Source back to a code object that can replace a given one.

``scaffold`` gives the text the surroundings that it needs, ``restoring`` restores what text can't say. May import
``printing`` and the modules of ``source`` itself. Start reading at ``to_code.py``.
"""
