#!/usr/bin/env python3
"""Measures Executor.map against the array that it is, on a pool that this program starts.

Usage: bench.py ROOST [CALLS]. Both arrays run the same interpreter once in each task.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import roost  # noqa: E402

SETTINGS = {"cpus": 1, "memory": "64MiB"}


@contextlib.contextmanager
def pool(program, directory):
    """A pool that ends with the block, however that is left: also by a signal."""
    with open(os.path.join(directory, "up.log"), "wb") as log:
        process = subprocess.Popen([program, "--dir", os.path.join(directory, "pool"), "up", "--nodes", "2", "--cpus", "8"],
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                   preexec_fn=end_with_parent)
    try:
        deadline = time.monotonic() + 120
        while b"A pool is up" not in open(log.name, "rb").read():
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(open(log.name).read())
            time.sleep(0.05)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def end_with_parent():
    """Has the kernel interrupt this process when its parent is killed."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)


def leave(number, _):
    sys.exit(128 + number)


def array(client, calls):
    began = time.monotonic()
    job = client.submit([sys.executable, "-c", "pass"], count=calls, **SETTINGS)
    job.wait()
    if job.refresh().counts.get("completed") != calls:
        raise SystemExit("the array ended with %s" % job.counts)
    return time.monotonic() - began


def functions(client, calls, directory):
    began = time.monotonic()
    with roost.Executor(client, directory=directory, **SETTINGS) as executor:
        if list(executor.map(lambda x: x + 1, range(calls))) != list(range(1, calls + 1)):
            raise SystemExit("a result is wrong")
    return time.monotonic() - began


def main():
    program, calls = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory, pool(program, directory):
        with roost.Client(os.path.join(directory, "pool"), program) as client:
            functions(client, 16, directory)  # the first tasks of a pool wait for claims
            plain = array(client, calls)
            mapped = functions(client, calls, directory)
    print("python: array of %d %.1f s (%.0f/s), Executor.map %.1f s, ratio %.2f" % (
        calls, plain, calls / plain, mapped, mapped / plain))


if __name__ == "__main__":
    main()
