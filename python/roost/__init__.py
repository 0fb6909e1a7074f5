"""Roost, a batch system, from Python.

    import roost

    with roost.Client() as pool:
        job = pool.submit(["python3", "train.py"], cpus=4, memory="8GiB", walltime="2h")
        job.wait(progress=True)
        print(job.logs())

    with roost.Executor(memory="1GiB") as pool:
        print(list(pool.map(lambda x: x * x, range(1000))))

The manual page roost-python(7) has the whole.
"""

from ._client import Client, Job, Task
from ._errors import (ConflictError, FinishedError, InvalidError, NotFoundError, PermissionDeniedError, RemoteTraceback,
                      RoostError, TaskError, TaskFailedError, TaskHeldError, TaskRemovedError, UnavailableError,
                      UsageError)
from ._executor import Executor, Future
from ._jobfile import Expression, Template
from ._progress import Progress

__version__ = "0.1.0"

as_completed = __import__("concurrent.futures").futures.as_completed

__all__ = ["Client", "ConflictError", "Executor", "Expression", "FinishedError", "Future", "InvalidError", "Job",
           "NotFoundError", "PermissionDeniedError", "Progress", "RemoteTraceback", "RoostError", "Task", "TaskError",
           "TaskFailedError", "TaskHeldError", "TaskRemovedError", "Template", "UnavailableError", "UsageError",
           "as_completed", "submit"]


def submit(command=None, **settings):
    """Submits a job to the pool of this machine, as ``Client.submit`` does, and returns it."""
    global _shared
    if _shared is None:
        _shared = Client()
    return _shared.submit(command, **settings)


_shared = None
