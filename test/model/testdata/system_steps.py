"""Steps about names, containers, buffers of Python's own, memory and processes."""

import multiprocessing.resource_tracker as tracker

import helpers
from numpy_steps import fresh, pick, size_of, step, target
from places import BUFFERS, PUBLISHED, SLOTS, TOP

STEPS = []


def reset(scope):
    tracker.ensure_running()  # a process, which the first shared memory would start
    scope.update(d={}, l=[None, None], o=helpers.Node(), q=[])
    scope["o"].n = helpers.Node()
    helpers.forget()


@step(STEPS, 9, writes=False)
def publish(dice, places):
    name = dice.choice(PUBLISHED)
    found = pick(dice, places, lambda a: a is not None, object)
    what = found[0] if found and dice.random() < 0.6 else fresh(dice)
    return "publish(%r, %s)" % (name, what)


@step(STEPS, 5, writes=False)
def publish_all(dice, places):
    """Several at once, numbers of Python's own among them."""
    parts = []
    for name in dice.sample(PUBLISHED, dice.choice([1, 2, 2, 3])):
        found = pick(dice, places, lambda a: a is not None, object)
        x = dice.random()
        if x < 0.5 and found:
            what = found[0]
        elif x < 0.8:
            what = fresh(dice)
        else:
            what = dice.choice(["True", "%d", "-%d", "%d.5", "1 << 70"]).replace("%d", str(dice.randrange(1 << 20)))
        parts.append("%r: %s" % (name, what))
    return "publish_all({%s})" % ", ".join(parts)


@step(STEPS, 3, writes=False)
def unpublish(dice, places):
    return "unpublish(%r)" % dice.choice(PUBLISHED)


@step(STEPS, 3, writes=False)
def move(dice, places):
    return dice.choice([
        "d = dict(d)", "l.reverse()", "l.append(l.pop(0))", "l = l[:]", "l = [%s, l[0]]" % fresh(dice), "o.a, o.n.w = o.n.w, o.a",
        "o = copy.copy(o)", "d.clear()", "%s, %s = %s, %s" % ((dice.choice(TOP), dice.choice(SLOTS)) * 2), 'd["k"], x0 = x0, d["k"]',
    ])


@step(STEPS, 6)
def buffers(dice, places):
    """Python's own arrays of bytes, which cannot grow while somebody looks at them."""
    b, other = dice.choice(BUFFERS), dice.choice(BUFFERS)
    n, seed = size_of(dice), dice.randrange(1 << 20)
    return dice.choice([
        "%s = bytearray(noise(%d, %d))" % (b, n, seed), "%s = bytearray(noise(%d, %d))" % (b, n, seed),
        '%s = array.array("d", noise(%d, %d))' % (b, n // 8 * 8, seed), "%s = (ctypes.c_int16 * %d)()" % (b, n // 2),
        "%s = mmap.mmap(-1, %d)" % (b, n + 1), "%s.append(7)" % b, "%s.append(7)" % b, "%s.extend(%s)" % (b, "b'12345678'"),
        "%s[:] = %s[::-1]" % (b, b), "del %s[:8]" % b, "%s.pop()" % b, "%s.clear()" % b, "%s[0:1] = noise(1, %d)" % (b, seed),
        "%s = np.frombuffer(%s, 'u1')" % (target(dice), b), "%s = memoryview(%s)" % (target(dice), b),
        "%s = bytes(%s)" % (target(dice), b), "%s = %s" % (b, other), "%s.close()" % b, "del %s" % b,
        "%s.release()" % target(dice), "%s = %s[::2]" % (b, b),
    ])


@step(STEPS, 3, writes=False)
def churn(dice, places):
    how = dice.choice(["churn", "churn", "churn", "churn_in_threads"])
    size = dice.choice([100, 5000, 8192, 1 << 16, 70000, 81920, 90000])
    return "%s(%d, %d)" % (how, size, dice.randrange(1, 12))


@step(STEPS, 0.5, writes=False)
def compute(dice, places):
    return "compute(%d)" % dice.choice([10, 100])


@step(STEPS, 1, writes=False)
def collect(dice, places):
    return dice.choice(["gc.collect()", "cycle(%s)" % fresh(dice), "cycle(%s)" % dice.choice(TOP)])


@step(STEPS, 0.4)
def fork(dice, places):
    found = pick(dice, places)
    return "fork(%s)" % found[0] if found and dice.random() < 0.5 else "fork()"


@step(STEPS, 0.05, writes=False)
def other_program(dice, places):
    return "run_child()"
