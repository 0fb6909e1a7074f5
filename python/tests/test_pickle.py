"""Functions and classes that go by value, in this process and in a new one."""

import dataclasses
import enum
import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
import unittest

import _roost_worker
from roost._jobfile import Expression, Template, job_block

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCALE = 3


def in_worker(code):
    """Runs calls that ``code`` (of a __main__) writes, by the worker, and returns the results."""
    with tempfile.TemporaryDirectory() as directory:
        program = os.path.join(directory, "main.py")
        with open(program, "w") as file:
            file.write("import _roost_worker\n" + textwrap.dedent(code) + textwrap.dedent("""
                common = _roost_worker.dumps(function)
                blobs = [_roost_worker.dumps((args, {})) for args in calls]
                _roost_worker.write_calls("calls", common, blobs, {"path": []})
            """))
        env = dict(os.environ, PYTHONPATH=HERE)
        subprocess.run([sys.executable, program], cwd=directory, env=env, check=True)
        os.unlink(program)
        subprocess.run([sys.executable, "-c", "import _roost_worker; _roost_worker.main()", "calls", "0", "100"],
                       cwd=directory, env=env, check=True)
        with open(os.path.join(directory, "result.0"), "rb") as file:
            return pickle.load(file)


def values(code):
    return [pickle.loads(r[1]) if r[0] else r[2] for r in in_worker(code)]


class ByValue(unittest.TestCase):
    def test_lambda_with_globals(self):
        self.assertEqual(values("k = 5\nfunction = lambda x: x * k\ncalls = [(1,), (2,)]"), [5, 10])

    def test_recursion_and_mutual_recursion(self):
        self.assertEqual(values("""
            def even(n): return n == 0 or odd(n - 1)
            def odd(n): return n > 0 and even(n - 1)
            function, calls = even, [(10,), (7,)]
        """), [True, False])

    def test_closure_that_names_itself(self):
        self.assertEqual(values("""
            def make():
                def fact(n): return 1 if n < 2 else n * fact(n - 1)
                return fact
            function, calls = make(), [(5,)]
        """), [120])

    def test_defaults_keywords_modules_imports(self):
        self.assertEqual(values("""
            import math, os.path as p
            def function(x, y=2, *, z=3):
                import json
                return json.dumps([math.floor(x), y, z, p.basename("/a/b")])
            calls = [(1.5,)]
        """), ['[1, 2, 3, "b"]'])

    def test_class_dataclass_enum(self):
        self.assertEqual(values("""
            import dataclasses, enum
            class Colour(enum.Enum):
                RED = 1
                BLUE = 2
                def shout(self): return self.name + "!"
            class Base:
                __slots__ = ("a",)
                def __init__(self): self.a = 1
                @property
                def twice(self): return 2 * self.a
                @staticmethod
                def s(): return "s"
                @classmethod
                def c(cls): return cls.__name__
            class Child(Base):
                def __init__(self):
                    super().__init__()
                    self.b = 2
            @dataclasses.dataclass(frozen=True)
            class Point:
                x: int
                y: int = 4
            def function(p, colour):
                child = Child()
                return (child.twice, child.b, Base.s(), Child.c(), dataclasses.astuple(p), hash(p) == hash(Point(1)),
                        p == Point(1, 4), colour is Colour.RED, colour.shout())
            calls = [(Point(1), Colour.RED)]
        """), [(2, 2, "s", "Child", (1, 4), True, True, True, "RED!")])

    def test_classes_come_back_as_what_they_were(self):
        class Local:
            def __init__(self, n):
                self.n = n

        copy = pickle.loads(_roost_worker.dumps(Local(3)))
        self.assertIs(type(copy), Local)

    def test_importable_functions_go_by_reference(self):
        self.assertIs(pickle.loads(_roost_worker.dumps(textwrap.dedent)), textwrap.dedent)
        self.assertLess(len(_roost_worker.dumps(textwrap.dedent)), 100)

    def test_named_modules_go_by_value(self):
        blob = _roost_worker.dumps(scaled, by_value=[__name__])
        copy = pickle.loads(blob)
        self.assertIsNot(copy, scaled)
        self.assertEqual(copy(2), 6)

    def test_exceptions(self):
        ok, error, text = in_worker("""
            class Own(Exception): pass
            def function(x): raise Own("bad %d" % x)
            calls = [(7,)]
        """)[0]
        self.assertFalse(ok)
        self.assertEqual(str(pickle.loads(error)), "bad 7")
        self.assertIn("in function", text)

    def test_result_that_cannot_be_pickled(self):
        ok, _, text = in_worker("import threading\nfunction, calls = lambda: threading.Lock(), [()]")[0]
        self.assertFalse(ok)
        self.assertIn("cannot pickle", text)

    def test_exit_is_an_error(self):
        ok, error, _ = in_worker("import sys\nfunction, calls = lambda: sys.exit(4), [()]")[0]
        self.assertEqual((ok, pickle.loads(error).code), (False, 4))

    def test_other_python(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "calls")
            _roost_worker.write_calls(path, b"", [b""], {})
            with open(path, "rb") as file:
                data = file.read()
            tag = sys.implementation.cache_tag.encode()
            with open(path, "wb") as file:
                file.write(data.replace(tag, b"x" * len(tag)))
            subprocess.run([sys.executable, "-c", "import _roost_worker; _roost_worker.main()", "calls", "0", "1"],
                           cwd=directory, env=dict(os.environ, PYTHONPATH=HERE), check=True)
            with open(os.path.join(directory, "result.0"), "rb") as file:
                self.assertIn("name the same Python", pickle.load(file)[0][2])


def scaled(x):
    return SCALE * x


class JobFile(unittest.TestCase):
    def test_values(self):
        text = job_block("a", {"command": ["echo", '${HOME} %{x} "q" \\ \n'], "count": 3, "cpus": 0.5, "memory": 2048,
                               "walltime": 90, "stdout": Template("o.${task.index}"), "labels": {"a b": "c"},
                               "service": {"restarts": 2, "backoff": {"first": "1s"}}, "rank": Expression("machine.cpus"),
                               "getenv": True, "hold": None})
        self.assertEqual(text, textwrap.dedent('''\
            job "a" {
              command = ["echo", "$${HOME} %%{x} \\"q\\" \\\\ \\n"]
              count = 3
              cpus = 0.5
              memory = "2K"
              walltime = "90s"
              stdout = "o.${task.index}"
              labels = { "a b" = "c" }
              service {
                restarts = 2
                backoff {
                  first = "1s"
                }
              }
              rank = machine.cpus
              getenv = true
            }
            '''))

    def test_names_cannot_break_out(self):
        with self.assertRaises(ValueError):
            job_block("a", {"x = 1\n y": 2})


if __name__ == "__main__":
    unittest.main()
