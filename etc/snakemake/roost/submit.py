#!/usr/bin/env python3
"""Submits a job of Snakemake and prints its id."""

import json
import re
import sys

import roost


def properties(script):
    with open(script) as file:
        for line in file:
            if line.startswith("# properties = "):
                return json.loads(line[len("# properties = "):])
    raise SystemExit("%s: there are no properties in it: is it a job script of Snakemake?" % script)


def number(resources, name):
    """Returns a resource that is a number; a text is one that Snakemake does not know yet."""
    value = resources.get(name)
    return value if isinstance(value, (int, float)) and value > 0 else None


def main():
    script = sys.argv[-1]
    found = properties(script)
    resources = found.get("resources", {})
    settings = {"cpus": found.get("threads", 1), "gpus": number(resources, "gpus"),
                "queue": resources.get("roost_queue")}
    for setting, name in (("memory", "mem_mb"), ("disk", "disk_mb")):
        if number(resources, name):
            settings[setting] = "%dM" % number(resources, name)
    if number(resources, "runtime"):
        settings["walltime"] = int(60 * number(resources, "runtime"))
    name = found.get("rule") or found.get("groupid") or "group"
    name = re.sub(r"[^A-Za-z0-9_.+-]", "_", "snakemake.%s.%s" % (name, found.get("jobid", "0")))[:200]
    with open(script) as file:
        text = file.read()
    with roost.Client() as pool:
        print(pool.submit(text, name=name, getenv=True, **settings).id)


if __name__ == "__main__":
    try:
        main()
    except roost.RoostError as error:
        sys.exit(str(error))
