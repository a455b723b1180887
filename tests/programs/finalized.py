"""Something that runs Python code when it is finalized."""


class Finalized:
    def __del__(self):
        pass
