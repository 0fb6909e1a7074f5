"""Runs a function call in a task, and pickles functions and classes by value.

The executor sends this file with each job, so it needs nothing but the standard library
and may not import the package ``roost``.
"""

import builtins
import dataclasses
import enum
import importlib
import io
import marshal
import os
import pickle
import sys
import traceback
import types
import weakref

# What a file of calls begins with; the digit is the version of its format.
MAGIC = b"roost calls 1\n"
_EMPTY_CELL = "roost: empty cell"
_NOT_COPIED = {"__dict__", "__weakref__", "_abc_impl", "__module__", "__qualname__"}

_namespaces = {}  # global variables of functions that came by value, by their origin
_classes = weakref.WeakValueDictionary()  # classes that came or went by value, by their token
_tokens = weakref.WeakKeyDictionary()


# --- by-value pickling ---------------------------------------------------------------


def _find(module, qualname):
    """Returns what an import of ``module`` has under a qualified name, or None."""
    found = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found


def _referenced_names(code):
    names = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            names |= _referenced_names(const)
    return names


class Pickler(pickle.Pickler):
    """Pickles functions and classes that cannot be imported elsewhere by value.

    These are lambdas, functions inside functions, what ``__main__`` and notebooks define,
    and what the modules named in ``by_value`` define.
    """

    def __init__(self, file, by_value=()):
        super().__init__(file, protocol=4)
        self.by_value = frozenset(by_value)

    def _goes_by_value(self, obj):
        module = obj.__module__
        if module is None or module == "__main__" or module in self.by_value:
            return True
        return _find(module, obj.__qualname__) is not obj

    def reducer_override(self, obj):
        if isinstance(obj, types.FunctionType):
            return _reduce_function(obj) if self._goes_by_value(obj) else NotImplemented
        if isinstance(obj, type):
            if obj.__module__ == "builtins" or not self._goes_by_value(obj):
                return NotImplemented
            return _reduce_enum(obj) if isinstance(obj, enum.EnumMeta) else _reduce_class(obj)
        if isinstance(obj, types.ModuleType):
            return importlib.import_module, (obj.__name__,)
        if isinstance(obj, (classmethod, staticmethod)):
            return type(obj), (obj.__func__,)
        if type(obj) is property:
            return property, (obj.fget, obj.fset, obj.fdel, obj.__doc__)
        if isinstance(obj, types.MappingProxyType):
            return _make_mapping_proxy, (dict(obj),)
        if type(obj).__module__ == "dataclasses":
            for name in ("MISSING", "KW_ONLY", "_FIELD", "_FIELD_CLASSVAR", "_FIELD_INITVAR"):
                if getattr(dataclasses, name, None) is obj:
                    return getattr, (dataclasses, name)
        return NotImplemented


def _make_mapping_proxy(mapping):
    return types.MappingProxyType(mapping)


def _reduce_function(func):
    code = func.__code__
    names = _referenced_names(code)
    variables = {n: func.__globals__[n] for n in sorted(names) if n in func.__globals__}
    contents = []
    for cell in func.__closure__ or ():
        try:
            contents.append(cell.cell_contents)
        except ValueError:  # a variable that has no value yet
            contents.append(_EMPTY_CELL)
    origin = "%s %d" % (func.__module__, id(func.__globals__))
    state = {
        "globals": variables,
        "cells": contents,
        "defaults": func.__defaults__,
        "kwdefaults": func.__kwdefaults__,
        "dict": func.__dict__,
        "annotations": func.__annotations__,
        "doc": func.__doc__,
        "qualname": func.__qualname__,
    }
    made = (marshal.dumps(code), origin, func.__name__, func.__module__, len(contents))
    return _make_function, made, state, None, None, _set_function_state


def _make_function(code, origin, name, module, cells):
    variables = _namespaces.setdefault(origin, {"__name__": module, "__builtins__": builtins})
    closure = tuple(types.CellType() for _ in range(cells)) or None
    func = types.FunctionType(marshal.loads(code), variables, name, None, closure)
    func.__module__ = module
    return func


def _set_function_state(func, state):
    func.__globals__.update(state["globals"])
    for cell, value in zip(func.__closure__ or (), state["cells"]):
        if not (isinstance(value, str) and value == _EMPTY_CELL):
            cell.cell_contents = value
    func.__defaults__ = state["defaults"]
    func.__kwdefaults__ = state["kwdefaults"]
    func.__dict__.update(state["dict"])
    func.__annotations__ = state["annotations"]
    func.__doc__ = state["doc"]
    func.__qualname__ = state["qualname"]


def _token(cls):
    token = _tokens.get(cls)
    if token is None:
        token = os.urandom(16)
        _tokens[cls], _classes[token] = token, cls
    return token


def _remember(cls, token):
    _tokens[cls], _classes[token] = token, cls
    return cls


def _reduce_class(cls):
    slots = cls.__dict__.get("__slots__", ())
    slots = {slots} if isinstance(slots, str) else set(slots)
    members = {k: v for k, v in cls.__dict__.items() if k not in _NOT_COPIED and k not in slots}
    made = (type(cls), cls.__name__, cls.__bases__, cls.__module__, cls.__qualname__, members.pop("__slots__", None),
            _token(cls))
    return _make_class, made, members, None, None, _set_class_state


def _make_class(meta, name, bases, module, qualname, slots, token):
    known = _classes.get(token)
    if known is not None:
        return known
    members = {"__module__": module, "__qualname__": qualname}
    if slots is not None:
        members["__slots__"] = slots
    return _remember(types.new_class(name, bases, {"metaclass": meta}, lambda ns: ns.update(members)), token)


def _set_class_state(cls, members):
    for name, value in members.items():
        if name not in cls.__dict__ or name in ("__doc__", "__hash__", "__annotations__"):
            setattr(cls, name, value)


def _reduce_enum(cls):
    values = {m.name: m.value for m in cls}
    for name, member in cls.__members__.items():  # aliases
        values.setdefault(name, member.value)
    inherited = set(dir(enum.Flag)) | set(dir(enum.IntEnum))
    members = {k: v for k, v in cls.__dict__.items()
               if k not in values and k not in inherited and not k.startswith("_") and isinstance(
                   v, (types.FunctionType, property, classmethod, staticmethod))}
    return _make_enum, (type(cls), cls.__name__, cls.__bases__, cls.__module__, cls.__qualname__, values, members,
                        _token(cls))


def _make_enum(meta, name, bases, module, qualname, values, members, token):
    known = _classes.get(token)
    if known is not None:
        return known
    namespace = meta.__prepare__(name, bases)
    namespace["__module__"], namespace["__qualname__"] = module, qualname
    for key, value in [*values.items(), *members.items()]:
        namespace[key] = value
    return _remember(meta(name, bases, namespace), token)


def dumps(obj, by_value=()):
    """Pickles an object; functions and classes that cannot be imported go by value."""
    file = io.BytesIO()
    Pickler(file, by_value).dump(obj)
    return file.getvalue()


# --- files of calls ------------------------------------------------------------------


def write_calls(path, common, calls, settings, pad=0):
    """Writes the calls of an array: what all of them share, and a record for each."""
    header = pickle.dumps(dict(settings, tag=sys.implementation.cache_tag, count=len(calls)), protocol=4)
    with open(path, "wb") as file:
        file.write(MAGIC)
        offset = len(MAGIC) + 8 * (len(calls) + 4)
        for part in (header, common, *calls):
            file.write(offset.to_bytes(8, "little"))
            offset += len(part)
        file.write(offset.to_bytes(8, "little"))
        file.write(bytes(8))  # reserved
        for part in (header, common, *calls):
            file.write(part)
        if offset < pad:
            file.truncate(pad)


def _read_parts(path, first, count):
    """Reads the header, the common part, and ``count`` calls from ``first`` on."""
    with open(path, "rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError("%s is not a file of calls, or one of a newer release of roost" % path)

        def part(index):
            file.seek(len(MAGIC) + 8 * index)
            begin, end = int.from_bytes(file.read(8), "little"), int.from_bytes(file.read(8), "little")
            file.seek(begin)
            return file.read(end - begin)

        header = pickle.loads(part(0))
        count = max(0, min(count, header["count"] - first))
        return header, part(1), [part(2 + first + i) for i in range(count)]


def _run_call(common, blob):
    """Runs a call; the result is (True, pickled value) or (False, pickled exception, text)."""
    try:
        func = pickle.loads(common) if common else None
        if func is None:
            func, args, kwargs = pickle.loads(blob)
        else:
            args, kwargs = pickle.loads(blob)
        return True, dumps(func(*args, **kwargs))
    except BaseException as error:  # also SystemExit: it ends the call, and its result says so
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        try:
            error.__traceback__ = error.__context__ = error.__cause__ = None
            pickled = dumps(error)
            pickle.loads(pickled)
        except Exception:
            pickled = None
        return False, pickled, text


def main(arguments=None):
    """Runs the calls of one task: FILE INDEX CALLS-IN-A-TASK."""
    path, index, count = arguments or sys.argv[1:]
    index, count = int(index), int(count)
    header, common, blobs = _read_parts(path, index * count, count)
    tag = sys.implementation.cache_tag
    if header["tag"] != tag:
        text = "the task runs %s on this machine, and the calls were made by %s: name the same Python with python=" % (
            tag, header["tag"])
        results = [(False, None, text)] * len(blobs)
    else:
        sys.path.extend(p for p in header.get("path", ()) if p not in sys.path)
        results = [_run_call(common, blob) for blob in blobs]
    target = "result.%d" % index
    partial = ".%s.%d" % (target, os.getpid())
    with open(partial, "wb") as file:
        pickle.dump(results, file, protocol=4)
    os.rename(partial, target)
    sys.stdout.flush()
    return 0
