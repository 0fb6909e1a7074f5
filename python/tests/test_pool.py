"""The package against a pool: the one that ROOST_DIR names."""

import concurrent.futures
import importlib.util
import io
import os
import signal
import tempfile
import threading
import time
import unittest

import roost


LIMIT = 600  # seconds for what takes a few: the machine may be busy


def square(x):
    return x * x


@unittest.skipUnless(os.environ.get("ROOST_DIR"), "there is no pool: ROOST_DIR is not set")
class PoolTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.pool = roost.Client()
        self.addCleanup(self.pool.close)

    def until(self, condition):
        deadline = time.monotonic() + LIMIT
        while not condition():
            self.assertLess(time.monotonic(), deadline, "it did not come true within %d s" % LIMIT)
            time.sleep(0.02)

    def executor(self, **settings):
        settings = {"cpus": 0.1, "memory": "64MiB", "directory": self.directory, **settings}
        return roost.Executor(self.pool, **settings)


class Jobs(PoolTest):
    def test_submit_wait_logs_events(self):
        job = self.pool.submit(["echo", "hi ${HOME}"], name="hello", memory="32MiB", labels={"kind": "test"})
        self.assertEqual(job.name, "hello")
        job.result(LIMIT)
        self.assertTrue(job.succeeded)
        self.assertEqual(job.logs(), "hi ${HOME}\n")
        self.assertEqual("".join(job.logs(follow=True)), "hi ${HOME}\n")
        self.assertEqual(job.events()[0]["what"], "submitted")
        self.assertIn(job.id, [j.id for j in self.pool.history()])
        self.assertIn(job.id, [j.id for j in self.pool.jobs(history=True)])

    def test_failure(self):
        job = self.pool.submit("echo oops >&2; exit 3", memory="32MiB")
        with self.assertRaisesRegex(roost.TaskFailedError, "exit code 3"):
            job.result(LIMIT)
        self.assertEqual(job.exit_code, 3)
        self.assertEqual(job.logs(stderr=True), "oops\n")

    def test_array(self):
        job = self.pool.submit(["sh", "-c", "exit $((ROOST_TASK_INDEX % 2))"], count=4, cpus=0.1, memory="32MiB",
                               environment={"ROOST_TASK_INDEX": roost.Template("${task.index}")})
        job.wait(LIMIT)
        self.assertEqual([t.exit_code for t in job.tasks()], [0, 1, 0, 1])
        self.assertEqual([t.index for t in job.tasks("failed")], [1, 3])
        self.assertEqual(job.task(2).refresh().index, 2)

    def test_hold_release_cancel(self):
        job = self.pool.submit(["sleep", "600"], hold=True, memory="32MiB")
        self.assertEqual(job.refresh().state, "held")
        with self.assertRaises(TimeoutError):
            job.wait(0.2)
        job.release()
        job.hold()  # it may have been about to start
        self.until(lambda: job.refresh().state == "held")
        job.cancel("done with it")
        with self.assertRaises(roost.TaskRemovedError):
            job.result(LIMIT)

    def test_same_key_same_job(self):
        a = self.pool.submit(["true"], key="k" + self.directory, memory="32MiB")
        b = self.pool.submit(["true"], key="k" + self.directory, memory="32MiB")
        self.assertEqual(a.id, b.id)

    def test_dependency(self):
        first = self.pool.submit(["true"], memory="32MiB")
        second = self.pool.submit(["true"], memory="32MiB", depends_on=[first])
        second.result(LIMIT)
        self.assertTrue(first.refresh().succeeded)

    def test_refusals(self):
        with self.assertRaisesRegex(roost.InvalidError, 'Did you mean "memory"'):
            self.pool.submit(["true"], memroy="1GiB")
        with self.assertRaisesRegex(roost.NotFoundError, "no such job"):
            self.pool.job("99999")
        self.assertIsInstance(roost.NotFoundError("x"), LookupError)

    def test_many_threads_one_connection(self):
        with concurrent.futures.ThreadPoolExecutor(16) as threads:
            nodes = list(threads.map(lambda _: len(self.pool.nodes()), range(64)))
        self.assertEqual(set(nodes), {nodes[0]})

    def test_connection_starts_again(self):
        self.pool.nodes()
        process = self.pool.connection._process
        process.kill()
        process.wait()
        self.assertTrue(self.pool.nodes())

    def test_end_of_the_connection_ends_calls(self):
        job = self.pool.submit(["sleep", "600"], memory="32MiB")
        process = self.pool.connection._process

        def kill():  # once the call is on its way: a later one would start another process
            self.until(lambda: self.pool.connection._calls)
            process.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        with self.assertRaisesRegex(roost.UnavailableError, "has ended"):
            job.wait(LIMIT)
        killer.join()
        job.cancel()


class Functions(PoolTest):
    def test_map_is_one_array(self):
        before = len(self.pool.jobs(history=True))
        offset = 3
        with self.executor(by_value=[__name__]) as pool:
            self.assertEqual(list(pool.map(lambda x, y: x + y + offset, range(5), range(5))), [3, 5, 7, 9, 11])
        self.assertEqual(len(self.pool.jobs(history=True)), before + 1)

    def test_chunks(self):
        with self.executor() as pool:
            futures = pool.map_futures(lambda x: x * x, [(i,) for i in range(10)], chunksize=4)
            self.assertEqual([f.result(LIMIT) for f in futures], [i * i for i in range(10)])
            self.assertEqual(len({f.task_id for f in futures}), 3)

    def test_submit_and_as_completed(self):
        with self.executor() as pool:
            futures = {pool.submit(pow, 2, i): i for i in range(8)}
            for future in roost.as_completed(futures, timeout=LIMIT):
                self.assertEqual(future.result(), 2 ** futures[future])
        self.assertEqual(os.listdir(self.directory), [])

    def test_exception_with_traceback(self):
        def fails(x):
            raise KeyError(x)

        with self.executor() as pool:
            error = pool.submit(fails, "k").exception(LIMIT)
        self.assertIsInstance(error, KeyError)
        self.assertIsInstance(error.__cause__, roost.RemoteTraceback)
        self.assertIn("in fails", str(error.__cause__))

    def test_task_that_dies_says_why(self):
        with self.executor() as pool:
            error = pool.submit(lambda: os.kill(os.getpid(), signal.SIGKILL)).exception(LIMIT)
        self.assertIsInstance(error, roost.TaskFailedError)
        self.assertIn("signal", str(error))

    def test_interpreter_that_is_missing(self):
        with self.executor(python="/nonexistent/python3") as pool:
            with self.assertRaises(roost.RoostError) as caught:
                pool.submit(square, 1).result(LIMIT)
        self.assertIn("/nonexistent/python3", str(caught.exception))

    def test_refused_submission(self):
        with self.executor(queue="nosuch") as pool:
            with self.assertRaisesRegex(roost.RoostError, "nosuch"):
                pool.submit(pow, 2, 2).result(LIMIT)

    def test_cancel_running(self):
        with self.executor() as pool:
            future = pool.submit(time.sleep, 600)
            self.until(lambda: future.task_id and self.pool.task(future.task_id).state == "running")
            self.assertTrue(future.cancel())
            self.assertTrue(future.cancelled())
            task = future.task_id
        self.assertEqual(self.pool.job(task).state, "removed")

    def test_shutdown_cancels(self):
        pool = self.executor()
        futures = [pool.submit(time.sleep, 600) for _ in range(3)]
        pool.shutdown(cancel_futures=True)
        self.assertTrue(all(f.cancelled() for f in futures))
        with self.assertRaises(RuntimeError):
            pool.submit(pow, 2, 2)

    def test_connection_ends_while_a_task_runs(self):
        with self.executor() as pool:
            future = pool.submit(time.sleep, 2)
            self.until(lambda: future.task_id)
            self.pool.connection._process.kill()
            self.assertIsNone(future.result(LIMIT))

    def test_timeout(self):
        pool = self.executor()
        with self.assertRaises(concurrent.futures.TimeoutError):
            list(pool.map(time.sleep, [600], timeout=0.5))
        pool.shutdown()

    def test_classes_of_this_file_come_back(self):
        with self.executor(by_value=[__name__]) as pool:
            value = pool.submit(Box, 4).result(LIMIT)
        self.assertIs(type(value), Box)
        self.assertEqual(value.n, 4)

    def test_progress(self):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        with self.executor() as pool:
            pool._progress = roost.Progress("squares", Terminal())
            list(pool.map(square, range(3)))
        self.assertIn("3/3", pool._progress.stream.getvalue())


@unittest.skipUnless(importlib.util.find_spec("joblib"), "joblib is missing")
class Joblib(PoolTest):
    def test_results_and_errors(self):
        import joblib

        import roost.joblib

        def invert(x):
            return 1 / x

        roost.joblib.register()
        with joblib.parallel_backend("roost", n_jobs=2, cpus=0.1, memory="128MiB", directory=self.directory):
            self.assertEqual(joblib.Parallel()(joblib.delayed(invert)(x) for x in (1, 2, 4)), [1, 0.5, 0.25])
            with self.assertRaises(ZeroDivisionError):
                joblib.Parallel()(joblib.delayed(invert)(x) for x in (1, 0))
        self.assertEqual(os.listdir(self.directory), [])
        self.assertGreaterEqual(roost.joblib.Backend().effective_n_jobs(-1), 1)


@unittest.skipUnless(importlib.util.find_spec("dask"), "dask is missing")
class Dask(PoolTest):
    def test_executor_is_a_scheduler(self):
        import dask

        increased = [dask.delayed(square)(x) for x in range(5)]
        with self.executor(by_value=[__name__]) as pool:
            self.assertEqual(dask.delayed(sum)(increased).compute(scheduler=pool), 30)


class Box:
    def __init__(self, n):
        self.n = n


if __name__ == "__main__":
    unittest.main()
