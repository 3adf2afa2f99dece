"""Scalars of NumPy, if there is one."""
from inside import append, equal, raises, through

try:
    import numpy as np
except ImportError:
    print("done")
    raise SystemExit
for v, want in [
    (np.int8(-3), -3), (np.uint64(2**64 - 1), 2**64 - 1), (np.float16(1.5), 1.5), (np.float32(0.1), float(np.float32(0.1))), (np.float64(0.1), 0.1),
    (np.bool_(True), True), (np.bool_(False), False), (np.complex64(1 + 2j), 1 + 2j), (np.complex128(1 + 2j), 1 + 2j), (np.str_("a"), "a"),
    (np.bytes_(b"a"), b"a"), ([np.float32(1)] * 100, [1.0] * 100), ({np.int64(3): np.int64(4)}, {3: 4}),
    ({"loss": np.float32(2), "n": [np.int32(5), (np.bool_(True),)]}, {"loss": 2.0, "n": [5, (True,)]}),
]:
    equal(through(v), want)
raises(append, [np.longdouble(1)], TypeError, "[0]", "cannot cross")
for v in [np.datetime64("2020-01-01"), np.datetime64("2020-01-01", "ns"), np.datetime64("NaT"), np.timedelta64(5, "s"), np.timedelta64(5)]:
    raises(append, [v], TypeError, "[0]", "a numpy." + type(v).__name__ + " cannot cross; hand over x.astype(int)")
raises(append, [np.zeros(3)], TypeError, "[0]", "a numpy.ndarray cannot cross")
print("done")
