"""``depyf fix``: edit the user's source for findings that have a mechanical remedy, and keep what a trial proves.

A remedy is an entry of a table (``remedies.py``): the causes that it is for, and a function that makes an edit or says
why it makes none. ``branches.py``, ``items.py``, ``settings.py``, ``dynamic.py`` and ``prints.py`` have the edits,
``expressions.py`` and ``captured.py`` what may be moved into a graph, ``reasons.py`` why other causes have no edit,
``trials.py`` the processes in which an edit is tried, ``sameness.py`` what must not change. May import ``running`` and
the layers below. Only these modules import ``libcst``. Start reading at ``question.py``.
"""
