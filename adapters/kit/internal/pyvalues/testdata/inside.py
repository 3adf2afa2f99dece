"""What the tests of pyvalues call: the library, and what is wrong with an answer."""
import ctypes
import os

ctypes.CDLL(os.environ["PYVALUES"]).ndOpen()
lib = ctypes.PyDLL(os.environ["PYVALUES"])


def function(name, *arguments):
    f = lib[name]
    f.restype = ctypes.py_object
    f.argtypes = arguments
    return f


append = function("ndAppend", ctypes.py_object)  # the form of an object
build = function("ndBuild", ctypes.py_object)  # the object of a form
through = function("ndThrough", ctypes.py_object)  # the object of the form of an object
random = function("ndRandom", ctypes.c_ssize_t)
time = function("ndTime", ctypes.py_object, ctypes.c_ssize_t)


def same(a, b):
    """Whether both are of the same types and have the same values, dicts in the same order unless Go's maps lost it."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(k in b and same(v, b[k]) for k, v in a.items())
    return repr(a) == repr(b) if isinstance(a, (float, complex)) else a == b


def check(what, wrong):
    if wrong:
        raise AssertionError(what)


def equal(got, want):
    if not same(got, want):
        raise AssertionError("got %r, want %r" % (got, want))


def raises(f, argument, kind, *texts):
    try:
        got = f(argument)
    except kind as e:
        for text in texts:
            check("%r does not say %r" % (str(e), text), text not in str(e))
    else:
        raise AssertionError("%r gives %r, and no %s %s" % (argument, got, kind.__name__, texts))
