"""The errors of programs that cannot be exported. The proxy serves them where PyTorch has them."""

from __future__ import annotations

from enum import Enum, auto


class UserErrorType(Enum):
    """What is wrong with a program that cannot be exported."""

    DYNAMIC_CONTROL_FLOW = auto()
    ANTI_PATTERN = auto()
    STANDARD_LIBRARY = auto()
    CONSTRAINT_VIOLATION = auto()
    DYNAMIC_DIM = auto()
    INVALID_INPUT = auto()
    INVALID_OUTPUT = auto()
    UNSUPPORTED_ALIASED_MUTATED_DYNAMIC_INPUTS = auto()


class TorchDynamoException(RuntimeError):
    """The base of what is raised about programs."""


class UserError(TorchDynamoException):
    """A program, or its example arguments, that cannot be exported as asked."""

    def __init__(self, error_type: UserErrorType, msg: str, case_name: str | None = None) -> None:
        super().__init__(msg)
        self.error_type = error_type
        self.message = msg
        self.case_name = case_name


class GuardOnDataDependentSymNode(RuntimeError):
    """A program that decides by the elements of a tensor."""


class ConstraintViolationError(RuntimeError):
    """A size that is not in the range that was given for it."""
