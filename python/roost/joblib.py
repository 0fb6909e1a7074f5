"""A backend for joblib, and so for scikit-learn: batches of calls run as tasks of a pool.

    import joblib, roost.joblib

    roost.joblib.register()
    with joblib.parallel_backend("roost", n_jobs=100, memory="2GiB"):
        joblib.Parallel()(joblib.delayed(f)(i) for i in range(1000))
"""

from __future__ import annotations

from typing import Any, Callable, Optional

from joblib.parallel import ParallelBackendBase, register_parallel_backend

from ._client import Client
from ._executor import Executor, Future


class _Result:
    """What joblib expects of a call that runs."""

    def __init__(self, future: Future) -> None:
        self._future = future

    def get(self, timeout: Optional[float] = None) -> Any:
        """Waits for the result and returns it."""
        return self._future.result(timeout)


class Backend(ParallelBackendBase):
    """Runs batches of calls as tasks. The keywords are those of ``Executor``."""

    supports_timeout = True
    uses_threads = False
    supports_sharedmem = False

    def __init__(self, nesting_level: Optional[int] = None, inner_max_num_threads: Optional[int] = None,
                 **settings: Any) -> None:
        super().__init__(nesting_level=nesting_level, inner_max_num_threads=inner_max_num_threads)
        self._settings, self._executor = settings, None

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Returns how many tasks there may be at once; -1 is one for each core of the pool."""
        if n_jobs is not None and n_jobs > 0:
            return n_jobs
        with Client() as client:
            return max(1, int(sum(n.get("cpus", {}).get("total", 0) for n in client.nodes())))

    def configure(self, n_jobs: int = 1, parallel: Any = None, **_: Any) -> int:
        """Begins to take calls."""
        self.parallel = parallel
        self._executor = Executor(**self._settings)
        return self.effective_n_jobs(n_jobs)

    def submit(self, func: Callable[[], Any], callback: Optional[Callable[[Any], None]] = None) -> _Result:
        """Runs a batch of calls as a task; newer releases of joblib call it."""
        return self.apply_async(func, callback)

    def apply_async(self, func: Callable[[], Any], callback: Optional[Callable[[Any], None]] = None) -> _Result:
        """Runs a batch of calls as a task."""
        future = self._executor.submit(func)

        def done(ended: Future) -> None:
            if not ended.cancelled() and ended.exception() is None:
                callback(ended.result())

        if callback is not None:
            future.add_done_callback(done)
        return _Result(future)

    def terminate(self) -> None:
        """Ends when all calls have."""
        if self._executor is not None:
            executor, self._executor = self._executor, None
            executor.shutdown(cancel_futures=True)

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Cancels all calls, as one has failed."""
        self.terminate()
        if ensure_ready:
            self._executor = Executor(**self._settings)


def register() -> None:
    """Makes the backend known to joblib by the name roost."""
    register_parallel_backend("roost", Backend)
