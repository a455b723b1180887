"""``depyf run``: a program as it is, with everything that it compiles dumped, and a summary when it has ended."""
