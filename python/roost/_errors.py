"""Exceptions: the refusals of a pool, by their kind."""

from __future__ import annotations


class RoostError(Exception):
    """A pool refused something, or a task did not end well. The text says why and what to do."""

    status: int = 1

    def __init__(self, text: str, status: "int | None" = None) -> None:
        super().__init__(text)
        if status is not None:
            self.status = status


class UsageError(RoostError):
    """A command line of the library is wrong: library and ``roost`` may be of different releases."""


class InvalidError(RoostError, ValueError):
    """A job or a request makes no sense; the text names the place."""


class NotFoundError(RoostError, LookupError):
    """There is no such job, task or node."""


class FinishedError(RoostError):
    """The job has ended already."""


class ConflictError(RoostError):
    """A limit or quota is reached, or the state of the job does not allow it."""


class PermissionDeniedError(RoostError, PermissionError):
    """The user may not do this."""

    def __init__(self, text: str, status: "int | None" = None) -> None:
        RoostError.__init__(self, text, status)


class UnavailableError(RoostError, ConnectionError):
    """The pool does not answer. Trying again helps once it does."""

    def __init__(self, text: str, status: "int | None" = None) -> None:
        RoostError.__init__(self, text, status)


class TaskError(RoostError):
    """A task ended without a result. ``task`` is its record, as roost-json(7) describes it."""

    def __init__(self, text: str, task: "dict | None" = None) -> None:
        super().__init__(text)
        self.task = task or {}


class TaskFailedError(TaskError):
    """The program of a task failed: it was killed, used too much, or ended with an exit status."""


class TaskRemovedError(TaskError):
    """Somebody removed the task before it had ended."""


class TaskHeldError(TaskError):
    """The task was held, because it could not be started or its output could not be stored."""


class RemoteTraceback(Exception):
    """The traceback of an exception in a task; the exception has it as its cause."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return '\n"""\n%s"""' % self.text


_KINDS = {64: UsageError, 65: InvalidError, 66: InvalidError, 68: NotFoundError, 35: FinishedError, 69: UnavailableError,
          75: ConflictError, 77: PermissionDeniedError}


def error_of(status: int, text: str) -> RoostError:
    """Returns the exception for an exit status of ``roost``."""
    text = text.strip() or "roost ended with exit status %d" % status
    if text.startswith("roost: "):
        text = text[len("roost: "):]
    return _KINDS.get(status, RoostError)(text, status)
