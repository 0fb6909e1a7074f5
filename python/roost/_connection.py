"""The connection to a pool: ``roost api``, a process of this user, at the ends of a pipe."""

from __future__ import annotations

import base64
import itertools
import json
import os
import queue
import shutil
import subprocess
import threading
from typing import Any, Callable, Iterator, Optional, Sequence

from ._errors import RoostError, UnavailableError, UsageError, error_of

PROTOCOL = 1


def find_program() -> str:
    """Returns the path of ``roost``: $ROOST_PROGRAM, or along PATH, or in /usr/local/bin."""
    named = os.environ.get("ROOST_PROGRAM")
    found = named or shutil.which("roost") or shutil.which("roost", path="/usr/local/bin:/usr/bin")
    if not found:
        raise UnavailableError("the program roost is not in PATH: is Roost installed on this machine? "
                               "ROOST_PROGRAM may name it")
    return found


class Call:
    """A command line that runs. Its output is read as it comes."""

    def __init__(self, connection: "Connection", key: str, notify: "Optional[Callable[[Call], None]]") -> None:
        self._connection, self._key, self._notify = connection, key, notify
        self._parts: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self.status: Optional[int] = None  # the exit status, once it has ended
        self.error = ""

    def _receive(self, answer: dict) -> None:
        if "exit" in answer:
            self.status, self.error = int(answer["exit"]), answer.get("error", "")
            self._parts.put(None)
        elif "bytes" in answer:
            self._parts.put(base64.b64decode(answer["bytes"]))
        elif "out" in answer:
            self._parts.put(answer["out"].encode())
        if self._notify:
            self._notify(self)

    def cancel(self) -> None:
        """Interrupts the command."""
        if self.status is None:
            self._connection._send({"v": 1, "id": self._key, "cancel": True})

    def parts(self) -> Iterator[bytes]:
        """Yields output as it comes, until the command has ended."""
        while True:
            part = self._parts.get()
            if part is None:
                return
            yield part

    def ready_documents(self) -> Iterator[dict]:
        """Yields the documents (one on each line) that are here already."""
        while True:
            try:
                part = self._parts.get_nowait()
            except queue.Empty:
                return
            for line in (part or b"").splitlines():
                yield json.loads(line)

    def documents(self) -> Iterator[dict]:
        """Yields the documents of a command that prints one on each line."""
        rest = b""
        for part in self.parts():
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                if line.strip():
                    yield json.loads(line)
        self.check()

    def output(self) -> bytes:
        """Waits for the end and returns the output; raises the refusal if there is one."""
        text = b"".join(self.parts())
        self.check()
        return text

    def check(self) -> None:
        """Raises the exception of a command that has failed."""
        if self.status:
            raise error_of(self.status, self.error)


class Connection:
    """Runs command lines in one warm process. It may be used by several threads."""

    def __init__(self, directory: Optional[str] = None, program: Optional[str] = None) -> None:
        self._directory, self._program = directory, program
        self._lock = threading.Lock()
        self._process: "Optional[subprocess.Popen[bytes]]" = None
        self._owner = 0  # the process that started it: after a fork the pipe is not ours
        self._calls: "dict[str, Call]" = {}
        self._keys = itertools.count(1)

    def start(self, arguments: Sequence[str], input: str = "", directory: Optional[str] = None,
              notify: "Optional[Callable[[Call], None]]" = None) -> Call:
        """Begins a command line. ``notify`` is called by another thread whenever an answer comes."""
        with self._lock:
            self._ensure()
            key = str(next(self._keys))
            call = self._calls[key] = Call(self, key, notify)
        request = {"v": 1, "id": key, "args": list(arguments), "input": input,
                   "directory": os.path.abspath(directory or os.getcwd())}
        self._send(request)
        return call

    def text(self, *arguments: str, input: str = "", directory: Optional[str] = None) -> bytes:
        """Runs a command line and returns its output."""
        return self.start(arguments, input, directory).output()

    def document(self, *arguments: str, input: str = "", directory: Optional[str] = None) -> Any:
        """Runs a command line with --json and returns its document."""
        return json.loads(self.text(arguments[0], "--json", *arguments[1:], input=input, directory=directory))

    def close(self) -> None:
        """Ends the process; what runs in it is interrupted."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _ensure(self) -> None:
        if self._process is not None and self._owner == os.getpid() and self._process.poll() is None:
            return
        line = [self._program or find_program(), "api"]
        if self._directory:
            line += ["--dir", self._directory]
        try:
            # a session of its own: Ctrl-C is for this program, which then decides what ends
            process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            raise UnavailableError("%s: %s" % (line[0], error.strerror)) from error
        first = process.stdout.readline()
        try:
            greeting = json.loads(first)
        except ValueError:
            process.kill()
            process.wait()
            raise UnavailableError("%s has no command api: is it of an older release?" % line[0]) from None
        if greeting.get("protocol") != PROTOCOL:
            process.stdin.close()
            raise UsageError("%s speaks protocol %s and this package %d: install the package that belongs to it" % (
                line[0], greeting.get("protocol"), PROTOCOL))
        self._process, self._owner, self._calls = process, os.getpid(), {}
        threading.Thread(target=self._read, args=(process, self._calls), name="roost answers", daemon=True).start()

    def _send(self, request: dict) -> None:
        line = json.dumps(request).encode() + b"\n"
        with self._lock:
            if self._process is None:
                raise RoostError("the connection is closed")
            try:
                self._process.stdin.write(line)
                self._process.stdin.flush()
            except (BrokenPipeError, ValueError) as error:
                raise UnavailableError("roost api has ended") from error

    def _read(self, process: "subprocess.Popen[bytes]", calls: "dict[str, Call]") -> None:
        for line in process.stdout:
            answer = json.loads(line)
            call = calls.get(answer.get("id", ""))
            if call is None:
                continue
            if "exit" in answer:
                del calls[answer["id"]]
            call._receive(answer)
        process.stdout.close()
        process.wait()
        try:
            process.stdin.close()
        except OSError:
            pass  # what was not sent cannot be any more
        for key in list(calls):
            calls.pop(key)._receive({"exit": 69, "error": "roost api has ended"})
