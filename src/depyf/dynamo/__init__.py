"""Everything that touches torch, in rooms by concept; importing it does not import torch.

From the bottom up: ``hooks``; ``guards``; ``entries``; ``store``; ``capture``; ``dump``; ``observe``; ``scripts``;
``questions``. A room imports from those below it only (``tests/test_layers.py``). Start reading at ``dump/prepare.py``
(``prepare_debug``) or at the file in ``questions`` that has the name of a public function.
"""
