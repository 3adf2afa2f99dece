"""Steps that make, change and drop NumPy's arrays. Each gives a statement, or None if there is nothing to do."""

import sys

import numpy as np

from places import SLOTS, TOP, Owner

NUMBERS = ["?", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16"]
OTHERS = [
    ">i2", ">u4", ">i8", ">f4", ">f8", ">c8", "M8[ns]", "M8[D]", "m8[s]", ">M8[us]", "S5", "<U3", ">U2", "V7",
    [("x", "<f4"), ("y", "<f4")], [("a", "u1"), ("b", "<i8"), ("c", ">f4")], [("p", [("q", "<i2"), ("r", "S3")]), ("s", "<f8", (2,))],
]
STEPS = []


def step(steps, weight, writes=True):
    """Mark a step: how often it is to be chosen, and whether it may write into memory that is there already."""

    def mark(f):
        f.weight, f.writes = weight, writes
        steps.append(f)
        return f

    return mark


def reset(scope):
    del scope
    Owner.made = False


def target(dice):
    """A place that anything can be assigned to."""
    return dice.choice(TOP) if dice.random() < 0.7 else dice.choice(SLOTS)


def pick(dice, places, want=lambda a: True, kind=np.ndarray):
    """A place with such an array, and the array; None if there is none."""
    found = []
    for path in TOP + SLOTS:
        a = places.held(path)
        if isinstance(a, kind) and not padded(a) and want(a):
            found.append((path, a))
    return dice.choice(found) if found else None


def padded(a):
    """Whether an element has bytes that no number is in: what they hold is chance."""
    return isinstance(a, np.ndarray) and a.dtype.char == "g"


def dtype_of(dice):
    return dice.choice(NUMBERS) if dice.random() < 0.7 else dice.choice(OTHERS)


def size_of(dice):
    """How many bytes: mostly few, some more than the threshold of the shared heap, rarely many."""
    x = dice.random()
    if x < 0.5:
        return dice.randrange(0, 300)
    if x < 0.8:
        return dice.randrange(4096, 12000)
    if x < 0.985:
        return dice.randrange(1 << 16, 90000)
    return dice.randrange(1 << 20, (1 << 20) + 4096)


def shape_of(dice, n):
    """Extents of about n elements."""
    rank = dice.choice([0, 1, 1, 1, 2, 2, 3])
    if rank == 0 and n < 300:
        return ()
    if rank < 2:
        return (n,)
    if rank == 2:
        rows = dice.choice([1, 2, 3, 16, 64])
        return (rows, n // rows) if dice.random() < 0.5 else (n // rows, rows)
    rows = dice.choice([1, 2, 4])
    return (rows, n // (3 * rows), 3)


def fresh(dice):
    dtype = dtype_of(dice)
    shape = shape_of(dice, size_of(dice) // np.dtype(dtype).itemsize)
    order = ', "F"' if dice.random() < 0.15 else ""
    return "mk(%r, %r, %d%s)" % (shape, dtype, dice.randrange(1 << 20), order)


@step(STEPS, 14, writes=False)
def create(dice, places):
    return "%s = %s" % (target(dice), fresh(dice))


@step(STEPS, 0.5, writes=False)
def create_unfit(dice, places):
    """What cannot be looked at: pointers to objects, and numbers that each machine has in its own way."""
    how = dice.choice(["np.array([1, None])", 'np.zeros(3, [("x", "f4"), ("o", "O")])', 'np.zeros(%d, "g")' % dice.randrange(10000)])
    return "%s = %s" % (target(dice), how)


@step(STEPS, 3, writes=False)
def create_in_file(dice, places):
    dtype = dice.choice(NUMBERS)
    shape = shape_of(dice, 1 + size_of(dice) // np.dtype(dtype).itemsize)
    if 0 in shape:
        return None
    make = dice.choice(["mapped", "mapped", "shared"])
    mode = dice.choice(["", "", ', "c"', ', "r"']) if make == "mapped" else ""
    return "%s = %s(%r, %r, %d%s)" % (target(dice), make, shape, dtype, dice.randrange(1 << 20), mode)


@step(STEPS, 6, writes=False)
def create_over(dice, places):
    """An array over memory that NumPy has not asked for, and that malloc maps by itself."""
    n, dtype = dice.randrange(66000, 100000) // 16 * 16, dice.choice(NUMBERS[1:])
    kind = dice.choice(["bytearray", "bytearray", "bytes"])
    return "%s = np.frombuffer(%s(noise(%d, %d)), %r)" % (target(dice), kind, n, dice.randrange(1 << 20), dtype)


LAYOUTS = [
    "{s}[::-1]", "{s}[::2]", "{s}.T", "{s}[1:-1]", "{s}[..., None]", "{s}[None]", "{s}[::3]", "{s}[::-257]", "{s}[:0]",
    "{s}.ravel()[::5]", "{s}.reshape(-1)", "{s}.swapaxes(0, -1)", "{s}.real", "{s}.imag", '{s}.view("u1")', "{s}[:]", "{s}.view()",
    "np.broadcast_to({s}, (2,) + {s}.shape)", "np.asfortranarray({s})", "{s}.copy()", "np.squeeze({s})", "{s}.diagonal()",
    "np.lib.stride_tricks.as_strided({s}, {s}.shape)", "{s}[{s}.dtype.names[-1]]", "{s}.byteswap()",
    "{s}.astype({s}.dtype.newbyteorder())", "Owner({s})", "memoryview({s})", "{s}[0]", "{s}[-1, ...]",
]


@step(STEPS, 16, writes=False)
def layout(dice, places):
    found = pick(dice, places, lambda a: a.nbytes < 1 << 20)
    return found and "%s = %s" % (target(dice), dice.choice(LAYOUTS).format(s=found[0]))


@step(STEPS, 16)
def write(dice, places):
    found = pick(dice, places)
    if not found:
        return None
    path, a = found
    how = dice.random()
    if how < 0.6 and not a.dtype.hasobject:
        return "%s[...] = mk(%s.shape, %s.dtype, %d)" % (path, path, path, dice.randrange(1 << 20))
    if how < 0.75 and a.ndim:
        return "%s[::2] = %s[-1:]" % (path, path)
    return dice.choice(["%s += 1", "%s.byteswap(True)", "%s.fill(3)", "%s[...] = 0", "np.negative(%s, out=%s)"]).replace("%s", path)


@step(STEPS, 6, writes=False)
def alias(dice, places):
    found = pick(dice, places, kind=object, want=lambda a: a is not None)
    if not found:
        return None
    a, b = target(dice), target(dice)
    return dice.choice(["%s = %s" % (a, found[0]), "%s = %s\n%s = None" % (a, found[0], b)])


@step(STEPS, 5, writes=False)
def delete(dice, places):
    path = dice.choice(TOP + ['d["k"]', 'd["j"]', "o.a", "o.n.w"])
    return dice.choice(["del %s", "del %s", "%s = None", "%s = 'no array'"]) % path


@step(STEPS, 5)
def resize(dice, places):
    # Of a read-only array, what is new is not set to zero, but is whatever was in the memory.
    found = pick(dice, places, lambda a: a.base is None and a.flags.writeable)
    if not found:
        return None
    path, a = found
    n = dice.choice([0, 1, a.size // 2, a.size, a.size + 1, a.size * 2, 70000 // a.itemsize])
    n = min(n, (1 << 20) // a.itemsize)
    # A view of a tensor over the array, or of an object of no framework, holds it, so NumPy refuses while that is open.
    how = ["resize(%s, %d)"] if "torch" in sys.modules or Owner.made else ["%s.resize(%d)", "resize(%s, %d)"]
    return dice.choice(how) % (path, n)


@step(STEPS, 5)
def change_in_place(dice, places):
    """Give an array another shape, or another type of as many bytes."""
    found = pick(dice, places)
    if not found:
        return None
    path, a = found
    statements = [
        "%s.shape = -1", "%s.shape = (1,) + %s.shape", "%s.shape = %s.shape[::-1]", "%s.shape = (2, -1)",
        '%s.dtype = "V%d" %% %s.itemsize'.replace("%d", "%%d"), "%s.dtype = %s.dtype.newbyteorder()",
    ]
    if a.flags.owndata and a.flags.c_contiguous:  # of others, NumPy does not know how much memory there is
        statements.append("%s.strides = %s.strides[::-1]")
    if a.dtype.names:
        statements += ["%s.dtype.names = tuple(n + 'z' for n in %s.dtype.names)"] * 6
    if a.dtype.kind in "iufmM":
        statements += ['%s.dtype = "<i" + str(%s.itemsize)', '%s.dtype = "<f" + str(%s.itemsize)'] * 2
    return dice.choice(statements).replace("%s", path).replace("%%", "%")


@step(STEPS, 3, writes=False)
def flags(dice, places):
    found = pick(dice, places)
    return found and "%s.flags.writeable = %s" % (found[0], dice.choice(["True", "False"]))


@step(STEPS, 2)
def other_memory(dice, places):
    """Give an array other memory."""
    found, other = pick(dice, places, lambda a: not places.shares(a)), pick(dice, places)
    if not found or not other:
        return None
    if dice.random() < 0.2 and other[1].flags.writeable:  # old versions take what is not for writable, too
        return "point(%s, %s)" % (found[0], other[0])
    return "refill(%s, %s, %d)" % (found[0], other[0], dice.randrange(1 << 20))


@step(STEPS, 4, writes=False)
def round_trip(dice, places):
    found = pick(dice, places)
    if not found:
        return None
    return dice.choice([
        "{t} = pickle.loads(pickle.dumps({s}))", "{t} = pickle.loads(pickle.dumps({s}, 5))", "{t} = copy.deepcopy({s})",
        "q.clear()\n{t} = pickle.loads(pickle.dumps({s}, 5, buffer_callback=q.append), buffers=q)", "{t} = np.frombuffer({s}.tobytes(), {s}.dtype)",
    ]).format(t=target(dice), s=found[0])
