"""Where the program's objects are, and what the program itself says about the memory of each."""

import array
import ctypes
import mmap
import re
import sys
import zlib

import numpy as np

TOP = ["x%d" % i for i in range(8)]
SLOTS = ['d["k"]', 'd["j"]', "l[0]", "l[1]", "o.a", "o.n.w"]
BUFFERS = ["b0", "b1"]
HOLDING = frozenset(TOP + BUFFERS)
DERIVED = ["x0.T", "x1[0]", "x2[-1]", "x3.real", "x7[0]", "o.a[1]", 'd["k"].T', "l[0][0]"]
PUBLISHED = ["p0", "p1", "p2", "x7", "o.a", 'q["z"].y']


MISSING = (NameError, KeyError, IndexError, AttributeError)


class Missing:
    """Stands for what a name does not lead to."""


class Owner:
    """An array of no framework: an object that only has the array interface."""

    made = False  # one was, since this was last set

    def __init__(self, a):
        self.array = a
        Owner.made = True

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


class Memory:
    """What an object says about its memory at one moment. It holds no reference to the object."""

    __slots__ = ("address", "shape", "strides", "itemsize", "dtype", "tag", "read_only", "content")

    def __init__(self, address, shape, strides, itemsize, dtype, tag="", read_only=False, content=None):
        self.address, self.shape, self.strides, self.itemsize = address, shape, strides, itemsize
        self.dtype, self.tag, self.read_only, self.content = dtype, tag, read_only, content

    def span(self):
        """The bytes that the elements touch, as addresses."""
        low = high = self.address
        for n, stride in zip(self.shape, self.strides):
            if n == 0:
                return self.address, self.address
            if stride < 0:
                low += (n - 1) * stride
            else:
                high += (n - 1) * stride
        return low, high + self.itemsize

    def row_major(self, raw):
        """The bytes of the elements in row-major order, out of the bytes of the span."""
        expected = self.itemsize
        for n, stride in zip(reversed(self.shape), reversed(self.strides)):
            if n != 1 and stride != expected:
                break
            expected *= n
        else:
            return raw
        if not raw:
            return b""
        low, _ = self.span()
        elements = np.ndarray(self.shape, "V%d" % self.itemsize, raw, self.address - low, self.strides)
        return elements.tobytes()

    def bytes(self):
        if self.content is not None:
            return self.content
        low, high = self.span()
        return self.row_major(ctypes.string_at(low, high - low)) if high > low else b""

    def say(self):
        return [list(self.shape), self.dtype, self.tag, zlib.crc32(self.bytes()), self.read_only]


def published_memory(o):
    """What a published object says about its memory: numbers of Python's own have none, and are arrays without axes."""
    for kind, code, dtype in (bool, "?", "bool"), (int, "<i8", "int64"), (float, "<f8", "float64"):
        if type(o) is kind:
            content = np.array(o, code).tobytes()
            return Memory(0, (), (), len(content), dtype, "", True, content)
    return memory(o)


class Refused(Exception):
    """Says that the host must refuse an object; the text is the category of the error, or "*" for any; "?": it may, or not."""


def row_major_strides(shape, itemsize):
    strides = []
    for n in reversed(shape):
        strides.append(itemsize)
        itemsize *= n
    return tuple(reversed(strides))


_PLAIN = {np.dtype(c).num: np.dtype(c).name for c in "?bBhHiIlLqQefdFD"}


def numpy_dtype(dtype):
    """The element type and the tag that the host must show."""
    if dtype.num in _PLAIN and dtype.isnative:
        return _PLAIN[dtype.num], ""
    if dtype.hasobject:
        raise Refused("wrong dtype")
    if dtype.kind not in "biufc" or dtype.num >= 256:
        return "opaque[%d]" % dtype.itemsize, str(dtype)
    if dtype.name in ("float128", "complex256", "longdouble", "clongdouble"):
        raise Refused("wrong dtype")
    return (dtype.name, "") if dtype.isnative else ("opaque[%d]" % dtype.itemsize, str(dtype))


def numpy_memory(a):
    dtype, tag = numpy_dtype(a.dtype)
    return Memory(
        a.ctypes.data, a.shape, a.strides, a.dtype.itemsize, dtype, tag, not a.flags.writeable
    )


def numpy_scalar_memory(a):
    if a.dtype.itemsize == 0:
        raise Refused("?")  # empty text: the host sees a character
    dtype, tag = numpy_dtype(a.dtype)
    if isinstance(a, np.void):  # a record, which is a part of an array
        return Memory(np.frombuffer(a, "u1").ctypes.data, (), (), a.dtype.itemsize, dtype, tag)
    return Memory(0, (), (), a.dtype.itemsize, dtype, tag, True, a.tobytes())


def is_tensor(o):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(o, torch.Tensor)


def torch_memory(t):
    torch = sys.modules["torch"]
    if t.layout is not torch.strided or t.device.type != "cpu" or t.is_conj() or t.is_neg():
        raise Refused("*")
    itemsize = t.element_size()
    strides = tuple(n * itemsize for n in t.stride())
    m = Memory(t.data_ptr(), tuple(t.shape), strides, itemsize, str(t.dtype)[6:])
    storage = t.untyped_storage()
    if t.numel() and m.span()[1] > storage.data_ptr() + storage.nbytes():
        # The storage was given up, or PyTorch has given the tensor a shape and then found no room for it.
        raise Refused("?" if storage.nbytes() else "*")
    return m


def jax_memory(x):
    jax = sys.modules["jax"]
    if x.is_deleted() or jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended):
        raise Refused("*")
    x.block_until_ready()
    strides = row_major_strides(x.shape, x.dtype.itemsize)
    return Memory(x.unsafe_buffer_pointer(), x.shape, strides, x.dtype.itemsize, str(x.dtype), "", True)


BUFFER_TYPES = bytes, bytearray, memoryview, array.array, ctypes.Array, mmap.mmap


def memory(o):
    """What o says about its memory; None if it is no array."""
    if isinstance(o, np.ndarray):
        return numpy_memory(o)
    if isinstance(o, np.generic):
        return numpy_scalar_memory(o)
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch and isinstance(o, torch.Tensor):
        return torch_memory(o)
    if jax and isinstance(o, jax.Array):
        return jax_memory(o)
    if isinstance(o, BUFFER_TYPES):
        try:
            return any_tag(numpy_memory(np.asarray(memoryview(o))))
        except RuntimeError:  # elements that NumPy cannot read
            raise Refused("?") from None
        except ValueError:  # closed or released
            raise Refused("*") from None
    if isinstance(o, (Owner, Part)):
        return any_tag(numpy_memory(o.array))
    if isinstance(o, Row):
        return o.memory
    return None


def any_tag(m):
    """The protocols have words of their own for elements that are no numbers."""
    m.tag = m.tag and "*"
    return m


def root(o):
    """The bytes that stay allocated while o lives, as addresses; None if nobody may write them."""
    if isinstance(o, np.ndarray):
        base = o.base
        while isinstance(base, np.ndarray):
            o, base = base, base.base
        if o.dtype.hasobject:
            return None
        address = o.ctypes.data
        if o.flags.owndata:
            return address, address + o.nbytes
        return Memory(address, o.shape, o.strides, o.itemsize, "").span()
    if isinstance(o, np.void) and not o.dtype.hasobject and o.nbytes:
        return root(np.frombuffer(o, "u1"))
    if isinstance(o, (Owner, Part)):
        return root(o.array)
    if isinstance(o, (memoryview, mmap.mmap, bytearray, array.array, ctypes.Array)):
        try:
            m = memoryview(o)
            if not m.nbytes:
                return None
            return root(m.obj if isinstance(m.obj, np.ndarray) else np.frombuffer(m.obj, "u1"))
        except (ValueError, BufferError):  # released, or closed
            return None
    torch = sys.modules.get("torch")
    if torch and isinstance(o, torch.Tensor) and o.layout is torch.strided and o.device.type == "cpu":
        storage = o.untyped_storage()
        return storage.data_ptr(), storage.data_ptr() + storage.nbytes()
    return None


def of(view):
    """The object that a memoryview is of; None if it was released."""
    try:
        return view.obj
    except ValueError:
        return None


def evaluate(expression, scope):
    """What a name leads to: an object, Missing, or None if the way there is no way."""
    try:
        return eval(expression, scope)
    except MISSING:
        return Missing
    except Exception:
        return None


class Part:
    """An element or a row of what speaks a protocol and is no array of a framework's."""

    def __init__(self, array):
        self.array = array

    @staticmethod
    def of(whole, i, o):
        """What a host sees of an element for which Python has o: not a copy, but the element."""
        if isinstance(whole, np.ndarray):
            return whole[i, ...] if isinstance(o, np.generic) else o
        if isinstance(whole, Owner):
            whole = whole.array
        elif is_tensor(whole):
            try:
                torch_memory(whole)
            except Refused:
                return whole  # no part of it is looked for
            return o
        elif Row.is_in(whole) and o is not None:
            return Row(whole, i)  # JAX would copy it
        elif isinstance(whole, BUFFER_TYPES):
            try:
                whole = np.asarray(memoryview(whole))
            except RuntimeError:  # elements that NumPy cannot read: of those of the whole nothing is known, either
                return whole
            except ValueError:
                return o
        else:
            return o
        try:
            return Part(whole[i, ...])
        except IndexError:
            return Missing if whole.ndim else None


class Row:
    """An element or a row of a JAX array, in its memory."""

    def __init__(self, whole, i):
        self.whole, m = whole, jax_memory(whole)
        at = m.address + i % m.shape[0] * m.strides[0]
        self.memory = Memory(at, m.shape[1:], m.strides[1:], m.itemsize, m.dtype, "", True)

    @staticmethod
    def is_in(o):
        jax = sys.modules.get("jax")
        return bool(jax) and isinstance(o, jax.Array) and not o.is_deleted() and o.ndim > 0 and o.shape[0] > 0


class Places:
    """The names of a program, by which the host and the steps find objects."""

    def __init__(self, scope, slots=(), derived=()):
        self.scope = scope
        self.published = {}  # name: object
        self.holding = TOP + SLOTS + BUFFERS + list(slots)  # every object that a step can reach is in one of these
        self.paths = list(dict.fromkeys(self.holding + DERIVED + list(derived) + PUBLISHED))
        self.derived = DERIVED + list(derived)
        self.codes = {path: compile(path, path, "eval") for path in self.paths}
        self.holds = [self.codes[path] for path in self.holding if path not in HOLDING]

    def held(self, path):
        """The object of a variable or a slot, whatever is published; Missing if there is none."""
        return evaluate(self.codes[path], self.scope)

    def get(self, path):
        """The object that the host must find under a name; Missing if there is none."""
        if path in self.published:
            return self.published[path]
        index = re.fullmatch(r"(.+)\[(-?\d+)\]", path)
        o = self.looked_up(path)
        if not index:
            return o
        if self.published_whole(path):
            whole = self.published[index[1]]
            o = evaluate("o[%s]" % index[2], {"o": whole})
        else:
            whole = self.looked_up(index[1])
        if o is not Missing:
            return Part.of(whole, int(index[2]), o)
        dimensions = getattr(whole, "ndim", None)
        if dimensions == 0:
            return None  # it has no axis
        return whole if dimensions and "err" in self.say(whole) else o  # no part of an array that is refused is looked for

    def published_whole(self, path):
        """The name of the published array of which a name means an element or a row; None if it means something else."""
        index = re.fullmatch(r"(.+)\[-?\d+\]", path)
        whole = index and self.published.get(index[1])
        has_parts = isinstance(whole, (Owner, *BUFFER_TYPES)) or getattr(whole, "shape", None) is not None
        return index[1] if index and has_parts else None

    def looked_up(self, path):
        """The object that a name which is not published leads to; Missing if there is none."""
        name, rest = re.match(r"(\w+)(.*)", path).groups()
        if name not in self.published:
            return self.held(path) if path in self.codes else evaluate(path, self.scope)
        return evaluate("o" + rest, {"o": self.published[name]})

    def objects(self):
        """Every object that a step can reach."""
        scope = self.scope
        for name in HOLDING:
            if name in scope:
                yield scope[name]
        for code in self.holds:
            try:
                yield eval(code, scope)
            except Exception:
                continue
        yield from self.published.values()

    def roots(self):
        """The memory of all those objects, without what holds it."""
        return {r for r in map(root, self.objects()) if r is not None}

    def shares(self, o):
        """Whether another object than o stands on memory of o."""
        mine = root(o)
        if mine is None:
            return True
        jax = sys.modules.get("jax")
        for other in self.objects():
            if other is o:
                continue
            if isinstance(other, memoryview) and of(other) is o:
                return True  # also if it has no elements
            if isinstance(other, np.void):
                return True  # perhaps: a record knows the array that it is a part of, and does not say which
            r = root(other)
            if r is None and jax and isinstance(other, jax.Array) and not other.is_deleted() and other.nbytes:
                r = other.unsafe_buffer_pointer(), other.unsafe_buffer_pointer() + other.nbytes
            if r is not None and r[0] < mine[1] and mine[0] < r[1]:
                return True
        return False

    def say(self, o, read=memory):
        """What the host must see of an object."""
        if o is Missing:
            return {"err": "not found"}
        try:
            m = read(o)
        except Refused as refusal:
            return {"err": str(refusal)}
        return {"err": "*"} if m is None else {"is": m.say()}
