"""An executor of concurrent.futures whose workers are tasks of a pool."""

from __future__ import annotations

import concurrent.futures
import os
import pickle
import queue
import re
import shutil
import sys
import tempfile
import threading
import time
import uuid
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Union

import _roost_worker

from ._client import Client, Job, _id, exit_text
from ._connection import Call
from ._errors import RemoteTraceback, RoostError, TaskError, TaskFailedError, TaskHeldError, TaskRemovedError
from ._jobfile import Template
from ._progress import Progress

_MAX_ARRAY = 100_000  # calls in one array
_MAX_OPEN = 200  # arrays at once; what comes then is gathered into larger ones
_SHARED_FILE = 1 << 20  # a file of this size travels to each machine once, see roost-job(5)
_LATE_RESULT = 15.0  # seconds until a shared file system shows the result of a task that has ended


class Future(concurrent.futures.Future):
    """The result of a call. ``task_id`` is the id of its task, once it is submitted."""

    def __init__(self, executor: "Executor") -> None:
        super().__init__()
        self._executor, self._array, self._place = executor, None, 0

    @property
    def task_id(self) -> Optional[str]:
        """The id of the task, such as ``123[7].host``; None before it is submitted."""
        array = self._array
        return array.task_id(self._place // array.chunk) if array is not None and array.job else None

    def cancel(self) -> bool:
        """Cancels the call, also while it runs: its task is removed."""
        cancelled = super().cancel()
        if cancelled:
            self._executor._cancelled(self)
        return cancelled


class _Array:
    """Calls that are one job."""

    def __init__(self, futures: "List[Future]", chunk: int, directory: str) -> None:
        self.futures, self.chunk, self.directory = futures, chunk, directory
        self.open = set(range(-(-len(futures) // chunk)))  # indexes of tasks without a result
        self.job: Optional[Job] = None
        self.call: Optional[Call] = None
        self.record: "Dict[str, Any]" = {}
        self.next_scan = self.ended_at = 0.0

    def cancel_all(self) -> None:
        """Cancels all calls, without their tasks."""
        for future in self.futures:
            concurrent.futures.Future.cancel(future)

    def part(self, index: int) -> "List[Future]":
        return self.futures[index * self.chunk:(index + 1) * self.chunk]

    def task_id(self, index: int) -> str:
        if not self.job.record.get("array", self.job.size > 1):
            return self.job.id
        number, dot, host = self.job.id.partition(".")
        return "%s[%d]%s%s" % (number, index, dot, host)


class Executor(concurrent.futures.Executor):
    """Runs functions as tasks of a pool.

    The keywords are settings of each task, as in roost-job(5): ``cpus``, ``memory``,
    ``gpus``, ``walltime``, ``requirements``, ``environment``, ``retries`` and so on. Calls
    that come together become one array. Functions and classes of ``__main__`` and of
    notebooks go by value, and so do those of the modules in ``by_value``; all others are
    imported where the task runs.

    ``directory`` has the files of calls and results, by default in ~/.cache/roost. Nodes
    that do not see it are sent the files.
    """

    def __init__(self, client: Optional[Client] = None, *, name: Optional[str] = None, python: Optional[str] = None,
                 directory: Optional[str] = None, by_value: "Sequence[Any]" = (), progress: bool = False,
                 **settings: Any) -> None:
        """Makes an executor; nothing is submitted before the first call."""
        self.client = client or Client()
        self._own_client = client is None
        self._name, self._python, self._settings = name, python or sys.executable, settings
        self._by_value = [m if isinstance(m, str) else m.__name__ for m in by_value]
        base = directory or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "roost")
        os.makedirs(base, exist_ok=True)
        self.directory = tempfile.mkdtemp(prefix="executor-", dir=os.path.abspath(base))
        shutil.copy(_roost_worker.__file__, os.path.join(self.directory, "_roost_worker.py"))
        self._lock = threading.Condition()
        self._pending: "List[tuple]" = []  # (function, pickled call, future)
        self._arrays: "List[_Array]" = []
        self._taken: "List[tuple]" = []  # calls that are no longer pending, while they become an array
        self._closed = False
        self._events: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self._progress = Progress(name or "calls") if progress else None
        self._total = self._done = self._failed = 0
        self._threads: "List[threading.Thread]" = []

    # --- what callers use

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        """Runs ``fn(*args, **kwargs)`` as a task, and returns its future."""
        blob = _roost_worker.dumps((fn, args, kwargs), self._by_value)
        future = Future(self)
        with self._lock:
            self._check_open()
            self._pending.append((_job_name(fn), blob, future))
            self._total += 1
            self._start()
            self._lock.notify_all()
        return future

    def map(self, fn: Callable[..., Any], *iterables: "Iterable[Any]", timeout: Optional[float] = None,
            chunksize: int = 1) -> Iterator[Any]:
        """Runs ``fn`` on each element as one array; yields the results in their order.

        A task runs ``chunksize`` calls, one after the other. Results that are not read are
        cancelled when the iterator is closed.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be at least 1")
        futures = self.map_futures(fn, zip(*iterables), chunksize)
        return _results(futures, None if timeout is None else time.monotonic() + timeout)

    def map_futures(self, fn: Callable[..., Any], calls: "Iterable[Sequence[Any]]", chunksize: int = 1) -> "List[Future]":
        """Runs ``fn(*call)`` for each of ``calls`` as one array, and returns the futures.

        They are for ``concurrent.futures.as_completed`` and ``wait``.
        """
        common = _roost_worker.dumps(fn, self._by_value)
        blobs = [_roost_worker.dumps((tuple(call), {}), self._by_value) for call in calls]
        futures = [Future(self) for _ in blobs]
        with self._lock:
            self._check_open()
            self._total += len(futures)
            self._start()
        step = _MAX_ARRAY * chunksize
        for first in range(0, len(blobs), step):
            self._submit_array(_job_name(fn), common, blobs[first:first + step],
                               futures[first:first + step], chunksize)
        return futures

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no more calls; with ``wait``, returns when all have ended."""
        with self._lock:
            self._closed = True
            dropped = []
            if cancel_futures:
                dropped = [f for _, _, f in self._taken + self._pending]
                self._pending = []
            self._lock.notify_all()
        for future in dropped:
            concurrent.futures.Future.cancel(future)
        # those that become an array from now on are cancelled already, and _submit_job sees that
        with self._lock:
            arrays = list(self._arrays) if cancel_futures else []
        for array in arrays:
            array.cancel_all()
            if array.job is not None:
                self._remove(array, sorted(array.open))
        self._events.put(None)
        if wait:
            for thread in self._threads:
                thread.join()
            self._release()

    def __exit__(self, kind: Any, *_: object) -> bool:
        # with Ctrl-C or an error nobody waits for results any more
        self.shutdown(wait=True, cancel_futures=kind is not None)
        return False

    # --- submission

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")

    def _start(self) -> None:
        if not self._threads:
            self._threads = [threading.Thread(target=self._dispatch, name="roost submit", daemon=True),
                             threading.Thread(target=self._collect, name="roost results", daemon=True)]
            for thread in self._threads:
                thread.start()

    def _dispatch(self) -> None:
        """Submits calls as arrays: all that have come while the array before was submitted."""
        while True:
            with self._lock:
                while not (self._pending and len(self._arrays) < _MAX_OPEN):
                    if self._closed and not self._pending:
                        self._events.put(None)
                        return
                    self._lock.wait()
                pending, self._pending = self._pending[:_MAX_ARRAY], self._pending[_MAX_ARRAY:]
                self._taken = pending
            pending = [p for p in pending if not p[2].cancelled()]
            if pending:
                self._submit_array(pending[0][0], b"", [p[1] for p in pending], [p[2] for p in pending], 1)
            with self._lock:
                self._taken = []

    def _submit_array(self, name: str, common: bytes, blobs: "List[bytes]", futures: "List[Future]", chunk: int) -> None:
        array = _Array(futures, chunk, os.path.join(self.directory, uuid.uuid4().hex[:12]))
        with self._lock:
            self._arrays.append(array)
        for place, future in enumerate(futures):
            future._array, future._place = array, place
        try:
            self._submit_job(array, name, common, blobs)
        except BaseException as error:
            for future in futures:
                self._finish(future, error=error)
            array.open.clear()
            self._events.put(array)
            if not isinstance(error, Exception):
                raise

    def _submit_job(self, array: _Array, name: str, common: bytes, blobs: "List[bytes]") -> None:
        os.mkdir(array.directory)
        size = sum(map(len, blobs)) + len(common)
        pad = _SHARED_FILE if size * len(array.open) > 16 * _SHARED_FILE else 0
        path = [p for p in (os.path.abspath(p) for p in sys.path) if os.path.isdir(p)]
        _roost_worker.write_calls(os.path.join(array.directory, "calls"), common, blobs, {"path": path}, pad)
        os.link(os.path.join(self.directory, "_roost_worker.py"), os.path.join(array.directory, "_roost_worker.py"))
        settings = {"memory": "256MiB", **self._settings}
        if len(array.open) > 1:
            settings["count"] = len(array.open)
        index = Template("${task.index}") if len(array.open) > 1 else "0"
        settings.update(
            command=[self._python, "-c", "import _roost_worker; _roost_worker.main()", "calls", index, str(array.chunk)],
            directory=array.directory, inputs=["_roost_worker.py", "calls"],
            outputs=[Template("result.${task.index}") if len(array.open) > 1 else "result.0"])
        job = self.client.submit(name=self._name or name, **settings)
        job.record["array"] = "count" in settings
        with self._lock:
            array.job = job
        self._watch(array)
        # what was cancelled meanwhile found no task to remove
        self._remove(array, [i for i in sorted(array.open) if all(f.cancelled() for f in array.part(i))])

    def _watch(self, array: _Array) -> None:
        arguments = ["wait", "--json", "--", array.job.id]
        array.call = self.client.connection.start(arguments, notify=lambda _: self._events.put(array))

    # --- results

    def _collect(self) -> None:
        """Gives futures their results as they come, until nothing is to come."""
        later: "Dict[_Array, float]" = {}
        while True:
            with self._lock:
                if self._closed and not (self._pending or self._taken or self._arrays):
                    break
            now = time.monotonic()
            timeout = max(0.0, min(later.values()) - now) if later else None
            try:
                array = self._events.get(timeout=timeout)
            except queue.Empty:
                array = None
            now = time.monotonic()
            if array is not None and array not in later:
                later[array] = max(now, array.next_scan)
            for due in [a for a, t in later.items() if t <= now]:
                del later[due]
                again = self._look(due)
                if again:
                    later[due] = time.monotonic() + again
        if self._progress and self._total:
            self._progress.update(self._done, self._total, self._failed, final=True)

    def _look(self, array: _Array) -> float:
        """Reads what is new of an array; returns in how many seconds to look again, 0 for never."""
        try:
            began = time.monotonic()
            failed: "List[Dict[str, Any]]" = []
            if array.call is not None:
                for document in array.call.ready_documents():
                    array.record = document["job"]
                    failed += document.get("failed") or []
            self._scan(array)
            for record in failed:
                self._fail(array, record)
            array.next_scan = time.monotonic() + max(0.02, 10 * (time.monotonic() - began))
            if array.open and array.record.get("counts", {}).get("held"):
                self._fail_held(array)
            self._show(array)
            if not array.open:
                return self._close_array(array)
            if array.call is not None and array.call.status is not None:
                return self._look_after_end(array)
        except Exception as error:
            for index in list(array.open):
                self._give_error(array, index, error)
            return self._close_array(array)
        return 0

    def _scan(self, array: _Array) -> None:
        """Reads the results that have come."""
        with os.scandir(array.directory) as entries:
            names = [e.name for e in entries if e.name.startswith("result.")]
        for name in names:
            index = int(name[len("result."):])
            path = os.path.join(array.directory, name)
            if index in array.open:
                with open(path, "rb") as file:
                    results = pickle.load(file)
                array.open.discard(index)
                for future, result in zip(array.part(index), results):
                    self._give(future, result)
            os.unlink(path)

    def _give(self, future: Future, result: tuple) -> None:
        try:
            if result[0]:
                self._finish(future, value=pickle.loads(result[1]))
                return
            _, pickled, text = result
            error = pickle.loads(pickled) if pickled is not None else TaskError(text.strip().splitlines()[-1])
            error.__cause__ = RemoteTraceback(text)
        except Exception as problem:
            error = TaskError("the result of %s cannot be read here: %s: %s" % (
                future.task_id, type(problem).__name__, problem))
        self._finish(future, error=error)

    def _finish(self, future: Future, value: Any = None, error: Optional[BaseException] = None) -> None:
        self._done += 1
        self._failed += error is not None
        try:
            if not future.set_running_or_notify_cancel():
                return
        except (RuntimeError, concurrent.futures.InvalidStateError):
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)

    def _give_error(self, array: _Array, index: int, error: BaseException) -> None:
        if index in array.open:
            array.open.discard(index)
            for future in array.part(index):
                self._finish(future, error=error)

    def _fail(self, array: _Array, record: "Dict[str, Any]") -> None:
        """Gives the futures of a task that has ended without a result their exception."""
        index = int(record.get("index", 0))
        kind = TaskRemovedError if record.get("state") == "removed" or record.get("removed") else TaskFailedError
        text = "%s of %s: %s" % (array.task_id(index), record.get("name", ""), exit_text(record))
        if kind is TaskFailedError and index in array.open:
            text += self._last_lines(array, index)
        self._give_error(array, index, kind(text, record))

    def _last_lines(self, array: _Array, index: int) -> str:
        """Returns the end of what a task wrote to standard error."""
        try:
            text = self.client.connection.text("logs", "--stderr", "--tail", "2K", "--", array.task_id(index))
        except RoostError:
            return ""
        return "\n" + text.decode(errors="replace").strip() if text.strip() else ""

    def _fail_held(self, array: _Array) -> None:
        """Ends tasks that Roost holds: nobody would wait for somebody to release them."""
        for task in array.job.tasks("held"):
            if task.index not in array.open or task.record.get("held_by") != "roost":
                continue  # who holds it may release it
            error = TaskHeldError("%s is held: %s" % (task.id, task.reason), task.record)
            self.client.cancel(task, reason="its call has failed: the task was held")
            self._give_error(array, task.index, error)

    def _look_after_end(self, array: _Array) -> float:
        """Finds out what became of tasks without a result, after the job has ended."""
        if array.call.status == 69:  # the pool did not answer for a while
            self._watch(array)
            return 1.0
        array.ended_at = array.ended_at or time.monotonic()
        for task in array.job.tasks():
            if task.index not in array.open or not task.ended:
                continue
            if task.succeeded and time.monotonic() - array.ended_at < _LATE_RESULT:
                continue
            if task.succeeded:
                task.record["reason"] = "it ended well, and its result did not come to " + array.directory
            self._fail(array, task.record)
        if not array.open:
            return self._close_array(array)
        return 0.2

    def _close_array(self, array: _Array) -> float:
        """Forgets an array all of whose calls have ended, once its job has."""
        if array.call is not None and array.call.status is None and array.job is not None:
            with self._lock:
                waits = array in self._arrays
            if waits:
                return 0  # the end of the job is the next event
        with self._lock:
            if array in self._arrays:
                self._arrays.remove(array)
            self._lock.notify_all()
        shutil.rmtree(array.directory, ignore_errors=True)
        return 0

    def _cancelled(self, future: Future) -> None:
        """Removes the task of a call that was cancelled, once all calls of the task are."""
        array = future._array
        if array is None:
            return
        index = future._place // array.chunk
        with self._lock:
            if array.job is None or not all(f.cancelled() for f in array.part(index)):
                return
        self._remove(array, [index])

    def _remove(self, array: _Array, indexes: "List[int]") -> None:
        """Removes tasks whose calls were cancelled."""
        if not indexes:
            return
        whole = len(indexes) == -(-len(array.futures) // array.chunk)
        try:
            self.client.cancel(*([array.job] if whole else [array.task_id(i) for i in indexes]),
                               reason="its call was cancelled")
        except RoostError:
            pass  # it has ended
        self._events.put(array)

    def _show(self, array: _Array) -> None:
        if self._progress:
            self._progress.update(self._done, self._total, self._failed,
                                  sum(a.record.get("counts", {}).get("running", 0) for a in list(self._arrays)))

    def _release(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        if self._own_client:
            self.client.close()


def _job_name(fn: Callable[..., Any]) -> str:
    """Returns a name for the job of a function; job names allow fewer characters."""
    name = re.sub(r"[^A-Za-z0-9_.+-]", "", getattr(fn, "__name__", type(fn).__name__)).lstrip("_.+-")
    return name[:200] or "call"


def _results(futures: "List[Future]", deadline: Optional[float]) -> Iterator[Any]:
    """Yields results in order; cancels the others when it is closed or a call has failed."""
    futures.reverse()
    try:
        while futures:
            timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
            value = futures[-1].result(timeout)
            futures.pop()
            yield value
    finally:
        for future in futures:
            future.cancel()
