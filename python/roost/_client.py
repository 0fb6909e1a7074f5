"""Client, jobs and tasks."""

from __future__ import annotations

import json
import os
import re
import uuid
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Union

from ._connection import Connection
from ._errors import RoostError, TaskFailedError, TaskHeldError, TaskRemovedError
from ._jobfile import job_block
from ._progress import Progress

JobLike = Union[str, int, "Job"]

_ENDED = {"completed", "removed", "failed"}
_TASK_ID = re.compile(r"^(\d+)\[(\d+)\](.*)$")


def _id(job: JobLike) -> str:
    return job.id if isinstance(job, Job) else str(job)


def exit_text(record: Mapping[str, Any]) -> str:
    """Returns in words how a task ended, from its record."""
    status = record.get("exit") or {}
    if record.get("reason"):
        return str(record["reason"])
    if status.get("signal"):
        return "ended by signal %s" % status["signal"]
    if "code" in status:
        return "ended with exit code %s" % status["code"]
    return str(record.get("state", "unknown"))


class Job:
    """A job, as it was when it was last read: ``refresh`` reads it again.

    ``record`` is the whole document, see JOB in roost-json(7); the most used members are
    attributes.
    """

    def __init__(self, client: "Client", record: "Dict[str, Any]") -> None:
        self.client, self.record = client, record

    @property
    def id(self) -> str:
        """The id, such as ``123.host``."""
        return self.record["id"]

    @property
    def name(self) -> str:
        """The name of the job."""
        return self.record.get("name", "")

    @property
    def state(self) -> str:
        """blocked, held, idle, starting, running, suspended, exiting, completed, removed or failed."""
        return self.record.get("state", "")

    @property
    def size(self) -> int:
        """The number of tasks."""
        return int(self.record.get("tasks", 1))

    @property
    def counts(self) -> "Dict[str, int]":
        """How many tasks are in each state; of completed ones that failed, as ``failed``."""
        return dict(self.record.get("counts", {}))

    @property
    def reason(self) -> str:
        """Why it waits, is held or failed."""
        return self.record.get("reason", "")

    @property
    def exit_code(self) -> Optional[int]:
        """The exit code of a task that has ended, or of a job of one task."""
        return (self.record.get("exit") or {}).get("code")

    @property
    def node(self) -> str:
        """The node of a task."""
        return self.record.get("node", "")

    @property
    def ended(self) -> bool:
        """Whether it has ended, well or not."""
        return self.state in _ENDED

    @property
    def succeeded(self) -> bool:
        """Whether it has ended well."""
        return self.state == "completed" and not self.counts.get("failed") and not (self.exit_code or 0)

    def refresh(self) -> "Job":
        """Reads the record again."""
        self.record = self.client.job(self.id).record
        return self

    def wait(self, timeout: Optional[float] = None, progress: bool = False) -> "Job":
        """Waits for the end; raises TimeoutError after ``timeout`` seconds."""
        self.client.wait(self, timeout=timeout, progress=progress)
        return self.refresh()

    def result(self, timeout: Optional[float] = None) -> "Job":
        """Waits for the end, and raises the exception of a job that did not end well."""
        self.wait(timeout)
        if self.state == "removed":
            raise TaskRemovedError("%s: %s" % (self.id, self.reason or "removed"), self.record)
        if not self.succeeded:
            raise TaskFailedError("%s: %s" % (self.id, exit_text(self.record)), self.record)
        return self

    def cancel(self, reason: str = "") -> None:
        """Removes it: what runs gets SIGTERM, its notice period, and SIGKILL."""
        self.client.cancel(self, reason=reason)

    def hold(self) -> None:
        """Holds it: it does not start until it is released."""
        self.client.hold(self)

    def release(self) -> None:
        """Releases it from a hold."""
        self.client.release(self)

    def tasks(self, state: Optional[str] = None) -> "List[Task]":
        """Returns its tasks by index, or those in a state."""
        arguments = ["jobs", "--tasks", "--history", "--limit", "0"]
        if state:
            arguments += ["--state", state]
        rows = self.client.connection.document(*arguments, "--", self.id)["jobs"]
        return [Task(self.client, r) for r in sorted(rows, key=lambda r: r.get("index", 0))]

    def task(self, index: int) -> "Task":
        """Returns one of its tasks."""
        number, dot, host = self.id.partition(".")
        return self.client.task("%s[%d]%s%s" % (number, index, dot, host))

    def logs(self, stderr: bool = False, follow: bool = False) -> "Union[str, Iterator[str]]":
        """Returns what it has written; with ``follow``, an iterator of what it writes."""
        return self.client.logs(self, stderr=stderr, follow=follow)

    def events(self) -> "List[Dict[str, Any]]":
        """Returns what happened to it, the first first."""
        return self.client.events(self)

    def __repr__(self) -> str:
        return "<roost.%s %s %s %s>" % (type(self).__name__, self.id, self.name, self.state)


class Task(Job):
    """One of the tasks of a job."""

    @property
    def index(self) -> int:
        """The index, from 0."""
        return int(self.record.get("index", 0))

    @property
    def attempt(self) -> int:
        """The number of its newest attempt, from 1; 0 before the first."""
        return int(self.record.get("attempt", 0))

    def refresh(self) -> "Task":
        """Reads the record again."""
        self.record = self.client.task(self.id).record
        return self


class Client:
    """A user's view of the pool of this machine. It needs no login and no address.

    It speaks through a process ``roost api`` of the same user, which starts with the first
    call and ends with ``close``, at the end of a ``with`` block, or with the program.
    """

    def __init__(self, directory: Optional[str] = None, program: Optional[str] = None) -> None:
        """Makes a client of the pool in ``directory`` ($ROOST_DIR by default)."""
        self.connection = Connection(directory, program)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process behind the client. The next call starts another."""
        self.connection.close()

    def submit(self, command: "Union[str, Sequence[str], None]" = None, *, name: str = "python",
               key: Optional[str] = None, **settings: Any) -> Job:
        """Submits a job and returns it.

        ``command`` is the program with its arguments; a text is run by the shell. The
        keywords are the settings of roost-job(5), such as ``count=100``, ``cpus=4``,
        ``memory="8GiB"``, ``walltime="2h"``, ``depends_on=[other]``. With the same ``key``
        again, the job of the first call is returned.
        """
        if isinstance(command, str):
            settings.setdefault("script", command)
        elif command is not None:
            settings["command"] = [c if isinstance(c, str) else os.fspath(c) if isinstance(c, os.PathLike) else str(c)
                                   for c in command]
        return self.submit_text(job_block(name, settings), key=key, directory=settings.get("directory"))[0]

    def submit_file(self, path: "Union[str, os.PathLike[str]]", key: Optional[str] = None,
                    variables: "Optional[Mapping[str, Any]]" = None) -> "List[Job]":
        """Submits the jobs of a job file."""
        with open(path, encoding="utf-8") as file:
            text = file.read()
        return self.submit_text(text, key, os.path.dirname(os.path.abspath(path)), variables)

    def submit_text(self, text: str, key: Optional[str] = None, directory: Optional[str] = None,
                    variables: "Optional[Mapping[str, Any]]" = None) -> "List[Job]":
        """Submits the jobs of the text of a job file: all of them, or none."""
        arguments = ["submit", "--quiet", "--key", key or uuid.uuid4().hex]
        for variable, value in (variables or {}).items():
            arguments += ["--var", "%s=%s" % (variable, value)]
        found = self.connection.document(*arguments, "-", input=text, directory=directory)["jobs"]
        return [Job(self, {**j, "state": "idle"}) for j in found]

    def jobs(self, *selectors: JobLike, all: bool = False, history: bool = False, state: Optional[str] = None,
             limit: int = 0) -> "List[Job]":
        """Lists jobs, those of the user unless ``all``; with ``history`` also ended ones."""
        arguments = ["jobs", "--limit", str(limit)]
        arguments += ["--all"] if all else []
        arguments += ["--history"] if history else []
        arguments += ["--state", state] if state else []
        found = self.connection.document(*arguments, "--", *map(_id, selectors))
        return [Job(self, r) for r in found["jobs"]]

    def job(self, job: JobLike) -> Job:
        """Returns a job by its id, ended or not."""
        return Job(self, self._record(job))

    def task(self, task: JobLike) -> Task:
        """Returns a task by its id, such as ``123[7]``."""
        return Task(self, self._record(task))

    def _record(self, job: JobLike) -> "Dict[str, Any]":
        return self.connection.document("show", "--events", "1", "--", _id(job))["job"]

    def wait(self, *jobs: JobLike, timeout: Optional[float] = None, progress: bool = False) -> None:
        """Waits until jobs have ended, well or not; raises TimeoutError after ``timeout`` seconds."""
        ids = [_id(j) for j in jobs]
        if not ids:
            return
        arguments = ["wait", "--json"]
        if timeout is not None:
            arguments += ["--timeout", "%dms" % max(1, int(timeout * 1000))]
        call = self.connection.start([*arguments, "--", *ids])
        shown = Progress(ids[0] if len(ids) == 1 else "%d jobs" % len(ids)) if progress else None
        latest: "Dict[str, Any]" = {}
        try:
            for document in call.documents():
                latest[document["job"]["id"]] = document["job"]
                if shown:
                    _show(shown, latest.values())
        except RoostError:
            if call.status == 124:
                raise TimeoutError("%s: not ended after %g s" % (", ".join(ids[:5]), timeout or 0)) from None
            if not latest or call.error:  # otherwise the status is that of the jobs
                raise
        except BaseException:
            call.cancel()
            raise
        finally:
            if shown:
                _show(shown, latest.values(), final=True)

    def cancel(self, *jobs: JobLike, force: bool = False, reason: str = "") -> None:
        """Removes jobs or tasks."""
        arguments = ["--force"] if force else []
        self._act("rm", jobs, "--yes", *arguments, *(["--reason", reason] if reason else []))

    def hold(self, *jobs: JobLike) -> None:
        """Holds jobs or tasks."""
        self._act("hold", jobs, "--yes")

    def release(self, *jobs: JobLike) -> None:
        """Releases jobs or tasks from a hold."""
        self._act("release", jobs)

    def retry(self, *jobs: JobLike) -> None:
        """Runs tasks that failed again."""
        self._act("retry", jobs)

    def suspend(self, *jobs: JobLike) -> None:
        """Freezes what runs of jobs or tasks."""
        self._act("suspend", jobs)

    def resume(self, *jobs: JobLike) -> None:
        """Lets suspended jobs or tasks go on."""
        self._act("resume", jobs)

    def _act(self, verb: str, jobs: "Iterable[JobLike]", *flags: str) -> None:
        ids = [_id(j) for j in jobs]
        if ids:
            self.connection.text(verb, *flags, "--", *ids)

    def logs(self, job: JobLike, stderr: bool = False, follow: bool = False) -> "Union[str, Iterator[str]]":
        """Returns what a task has written; with ``follow``, an iterator of what it writes."""
        arguments = ["logs", *(["--stderr"] if stderr else []), *(["--follow"] if follow else []), "--", _id(job)]
        if not follow:
            return self.connection.text(*arguments).decode(errors="replace")
        return self._follow(arguments)

    def _follow(self, arguments: "List[str]") -> Iterator[str]:
        call = self.connection.start(arguments)
        try:
            for part in call.parts():
                yield part.decode(errors="replace")
            call.check()
        finally:
            call.cancel()

    def events(self, job: JobLike) -> "List[Dict[str, Any]]":
        """Returns what happened to a job or task, the first first."""
        return self.connection.document("show", "--events", "0", "--", _id(job))["events"]

    def history(self, *selectors: JobLike, since: Optional[str] = None, all: bool = False, limit: int = 100) -> Iterator[Job]:
        """Yields jobs that have ended, the newest first; ``since`` is a time ago as 2d, or a date."""
        arguments = ["history", "--json", "--limit", str(limit)]
        arguments += ["--since", since] if since else []
        arguments += ["--all"] if all else []
        for document in self.connection.start([*arguments, "--", *map(_id, selectors)]).documents():
            yield Job(self, document["job"])

    def why(self, job: JobLike) -> "Dict[str, Any]":
        """Returns why a job or task does not run, as roost why has it."""
        return self.connection.document("why", "--", _id(job))

    def nodes(self) -> "List[Dict[str, Any]]":
        """Lists the nodes of the pool."""
        return self.connection.document("nodes")["nodes"]

    def command(self, *arguments: str, input: str = "") -> Any:
        """Runs any command that has --json and returns its document."""
        return self.connection.document(*arguments, input=input)


def _show(progress: Progress, records: "Iterable[Dict[str, Any]]", final: bool = False) -> None:
    done = total = failed = running = 0
    for record in records:
        counts = record.get("counts", {})
        total += record.get("tasks", 1)
        done += sum(counts.get(s, 0) for s in ("completed", "removed"))
        failed += counts.get("failed", 0)
        running += counts.get("running", 0)
    progress.update(done, total, failed, running, final)
