"""The public questions: a file or a folder each, with ``question.py`` as the entry.

``why``, ``watch`` and ``expect`` are files; ``trace``, ``nonfinite``, ``probe``, ``compare`` and ``extract`` are
folders; ``magics.py`` has those of IPython. Results are the types in ``depyf.answers``. May import everything of
``dynamo``. Start reading at ``why.py``.
"""
