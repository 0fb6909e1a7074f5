#!/usr/bin/env python3
"""A parameter sweep: functions of this file run as tasks, and their results come back.

Run it on a machine of the pool, as in: python3 sweep.py
"""

import math

import roost


def fit(rate, depth):
    """Stands for a training: returns how good these settings are."""
    return -((math.log10(rate) + 2) ** 2) - (depth - 5) ** 2 / 10


def main():
    settings = [(10 ** -e, depth) for e in range(1, 5) for depth in (3, 5, 7)]
    with roost.Executor(cpus=0.1, memory="128MiB", progress=True) as pool:
        futures = dict(zip(pool.map_futures(fit, settings), settings))
        for future in roost.as_completed(futures):
            print("rate %g, depth %d: %.2f" % (*futures[future], future.result()))
    best = max(futures, key=lambda f: f.result())
    print("best: rate %g, depth %d" % futures[best])


if __name__ == "__main__":
    main()
