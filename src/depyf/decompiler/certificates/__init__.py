"""Check certificates of proofs: a second, small definition of what the verifier proves.

A certificate lists states in which both sides meet (a simulation relation); ``verify/certificate.py`` writes it. Here
nothing is searched: ``check.py`` runs both sides from each state to the next ones. It shares the normal form with the
verifier, and no more.

May import ``normal``, ``bytecode`` and below. Start reading at ``check.py``.
"""
