#!/usr/bin/env python3
"""Measures Executor.map against the array that it is, on a pool that this program starts.

Usage: bench.py ROOST [CALLS]. Both arrays run the same interpreter once in each task.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import roost  # noqa: E402

SETTINGS = {"cpus": 1, "memory": "64MiB"}


def start_pool(program, directory):
    with open(os.path.join(directory, "up.log"), "wb") as log:
        pool = subprocess.Popen([program, "--dir", os.path.join(directory, "pool"), "up", "--nodes", "2", "--cpus", "8"],
                                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    deadline = time.monotonic() + 30
    while b"A pool is up" not in open(log.name, "rb").read():
        if pool.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(open(log.name).read())
        time.sleep(0.05)
    return pool


def array(client, calls):
    began = time.monotonic()
    job = client.submit([sys.executable, "-c", "pass"], count=calls, **SETTINGS)
    job.wait()
    if job.refresh().counts.get("completed") != calls:
        raise SystemExit("the array ended with %s" % job.counts)
    return time.monotonic() - began


def functions(client, calls, directory):
    began = time.monotonic()
    with roost.Executor(client, directory=directory, **SETTINGS) as pool:
        if list(pool.map(lambda x: x + 1, range(calls))) != list(range(1, calls + 1)):
            raise SystemExit("a result is wrong")
    return time.monotonic() - began


def main():
    program, calls = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        pool = start_pool(program, directory)
        try:
            with roost.Client(os.path.join(directory, "pool"), program) as client:
                functions(client, 16, directory)  # the first tasks of a pool wait for claims
                plain = array(client, calls)
                mapped = functions(client, calls, directory)
        finally:
            pool.send_signal(signal.SIGINT)
            pool.wait()
    print("python: array of %d %.1f s (%.0f/s), Executor.map %.1f s, ratio %.2f" % (
        calls, plain, calls / plain, mapped, mapped / plain))


if __name__ == "__main__":
    main()
