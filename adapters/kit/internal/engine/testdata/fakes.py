"""Objects that speak one protocol each, in all the ways that real frameworks do and should not.

`log` counts what became of each capsule: calls of its deleter, and its name in the end.
"""

import ctypes
import json

import numpy as np

memory = np.arange(1 << 16, dtype="f8")  # large enough for the shared heap
ADDRESS = memory.ctypes.data
log = {}


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Legacy(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Tensor),
    ]


DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, DESTRUCTOR]
api.PyCapsule_GetName.restype = ctypes.c_char_p
api.PyCapsule_GetName.argtypes = [ctypes.c_void_p]

alive = []  # what the C structs point to


def longs(values):
    array = (ctypes.c_int64 * max(len(values), 1))(*values)
    alive.append(array)
    return ctypes.addressof(array)


class Fake:
    """Exports `memory` by DLPack as told."""

    def __init__(self, name, versioned=False, shape=(4,), strides=None, data=ADDRESS, offset=0, code=2, bits=64,
                 lanes=1, device=(1, 0), flags=0, version=(1, 3), deleter=True, capsule=None, stream=False,
                 keywords=True, ndim=None, shape_address=None, device_error=None):
        self.__dict__.update(locals())
        log[name] = {"made": 0, "deleted": 0, "calls": [], "names": []}

    def __dlpack_device__(self):
        if self.device_error is not None:
            raise self.device_error
        return self.device

    def __dlpack__(self, **kw):
        entry = log[self.name]
        entry["calls"].append(sorted(kw))
        if not self.keywords and kw:
            raise TypeError("unexpected keyword argument")
        if not self.stream and "stream" in kw:
            raise RuntimeError("this takes no stream")
        entry["made"] += 1
        managed = Versioned() if self.versioned else Legacy()
        t = managed.tensor
        t.data, t.device_type, t.device_id, t.byte_offset = self.data, 1, 0, self.offset
        if self.device[0] != 1 and self.device[1] is not None:
            t.device_type, t.device_id = self.device
        t.ndim = len(self.shape) if self.ndim is None else self.ndim
        t.code, t.bits, t.lanes = self.code, self.bits, self.lanes
        t.shape = longs(self.shape) if self.shape_address is None else self.shape_address
        t.strides = None if self.strides is None else longs(self.strides)

        def delete(address):
            entry["deleted"] += 1

        function = DELETER(delete)
        if self.deleter:
            managed.deleter = ctypes.cast(function, ctypes.c_void_p).value
        if self.versioned:
            managed.major, managed.minor = self.version
            managed.flags = self.flags

        def destroy(capsule):
            name = api.PyCapsule_GetName(capsule)
            entry["names"].append(name.decode())
            if not name.startswith(b"used_") and self.deleter:
                delete(None)

        destructor = DESTRUCTOR(destroy)
        name = self.capsule or (b"dltensor_versioned" if self.versioned else b"dltensor")
        alive.extend([managed, function, destructor, name])
        return api.PyCapsule_New(ctypes.addressof(managed), name, destructor)


class Interface:
    def __init__(self, **entries):
        self.__array_interface__ = dict({"shape": (4,), "typestr": "<f8", "data": (ADDRESS, False), "version": 3}, **entries)


class CUDA:
    __cuda_array_interface__ = {"shape": (4,), "typestr": "<f8", "data": (ADDRESS, False), "version": 3}


class Raising:
    def __init__(self, **errors):
        self.errors = errors

    def __getattr__(self, name):
        if name in self.errors:
            raise self.errors[name]
        raise AttributeError(name)


def report():
    """The log as an array of bytes, so that it can be viewed."""
    return np.frombuffer(json.dumps(log).encode() or b"{}", "u1")


class Report:
    """Each reading of .now is a new report."""

    @property
    def now(self):
        return report()


reports = Report()
