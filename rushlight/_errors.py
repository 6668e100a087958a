"""The exception classes that Python itself does not have."""


class OutOfMemoryError(RuntimeError):
    """Raised when memory for a tensor cannot be had; the program may go on with less."""


class LinAlgError(RuntimeError):
    """Raised when a linear-algebra routine cannot finish, for example on a singular matrix."""


class AcceleratorError(RuntimeError):
    """What PyTorch raises for errors of a GPU's driver, which are RuntimeErrors here."""
