"""The pipeline: a code object in, verified source out. Start at ``decompiling.py``.

``attempts.py`` writes a code object in one form and compares it, ``settling.py`` deletes temporaries where they would
live too long, ``salvage.py`` leaves out what can't be had of a module or class.
"""

from depyf.pipeline.decompiling import decompile_code as decompile_code
