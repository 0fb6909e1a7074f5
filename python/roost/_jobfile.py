"""Job files: keyword settings become the text that roost-job(5) describes."""

from __future__ import annotations

import datetime
import os
import re
from typing import Any, Mapping

_MAPS = {"environment", "labels", "inputs", "outputs"}
_DURATIONS = {"walltime", "cpu_time", "process_cpu_time", "notice", "lease", "start_timeout", "start_after"}
_SIZES = {"memory", "disk", "gpu_memory", "virtual_memory", "process_memory", "process_virtual_memory", "file_size"}
_NAME = re.compile(r"^[a-z][a-z0-9_]*$")


class Expression(str):
    """Text that goes into the job file as it is, such as ``Expression("task.index % 4")``."""


class Template(str):
    """A text with ``${task.index}`` or ``${each.NAME}`` in it, which each task replaces."""


def _escape(text: str) -> str:
    out = []
    for c in text:
        if c in '"\\':
            out.append("\\" + c)
        elif c == "\n":
            out.append("\\n")
        elif c == "\r":
            out.append("\\r")
        elif c == "\t":
            out.append("\\t")
        elif ord(c) < 32 or ord(c) == 127:
            out.append("\\u%04x" % ord(c))
        else:
            out.append(c)
    return "".join(out)


def quote(text: str) -> str:
    """Returns a text as a literal of a job file."""
    if isinstance(text, Expression):
        return str(text)
    if isinstance(text, Template):
        return '"' + _escape(text) + '"'
    return '"' + _escape(text).replace("${", "$${").replace("%{", "%%{") + '"'


def _value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if name in _DURATIONS and isinstance(value, datetime.timedelta):
        return '"%gs"' % value.total_seconds()
    if name in _DURATIONS and isinstance(value, (int, float)):
        return '"%gs"' % value
    if name in _SIZES and isinstance(value, int):
        return '"%dK"' % -(-value // 1024)
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, os.PathLike):
        return quote(os.fspath(value))
    if isinstance(value, Mapping):
        return "{ " + ", ".join("%s = %s" % (quote(str(k)), _value("", v)) for k, v in value.items()) + " }"
    if hasattr(value, "id") and isinstance(value.id, str):  # a job
        return quote(value.id)
    if isinstance(value, (list, tuple, set, frozenset, range)):
        return "[" + ", ".join(_value(name if name == "depends_on" else "", v) for v in value) + "]"
    raise TypeError("the setting %s cannot have a value of type %s" % (name, type(value).__name__))


def _settings(settings: Mapping[str, Any], indent: str) -> "list[str]":
    lines = []
    for name, value in settings.items():
        if not _NAME.match(name):
            raise ValueError("%r is no name of a setting: roost-job(5) lists them" % name)
        if value is None:
            continue
        if isinstance(value, Mapping) and name not in _MAPS and not name.startswith("for_"):
            lines += [indent + name + " {", *_settings(value, indent + "  "), indent + "}"]
        else:
            lines.append("%s%s = %s" % (indent, name, _value(name, value)))
    return lines


def job_block(name: str, settings: Mapping[str, Any]) -> str:
    """Returns the block of a job. A dict is a block, except where the setting is a map."""
    return "\n".join(["job %s {" % quote(name), *_settings(settings, "  "), "}", ""])
