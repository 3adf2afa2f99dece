"""Steps that make, donate, alias and delete JAX's arrays."""

import jax
import jax.numpy as jnp
import numpy as np

from numpy_steps import pick, step, target

STEPS = []
SLOTS = []
DERIVED = []
SHAPES = [(5,), (20000,), (130, 131)]  # few, since each is compiled for
DTYPES = ["float32", "int32"]

_donate = jax.jit(lambda x: x + 1, donate_argnums=0)


def donate(x):
    """Give an array up for a new one. JAX keeps what somebody else holds, which a lease does; then it is deleted
    here, so that the program goes on as without a host."""
    y = _donate(x)
    if not x.is_deleted():
        x.delete()
    return y


def exported():
    return {"jax": jax, "jnp": jnp, "donate": donate}


def reset(scope):
    del scope


def some(dice, places):
    return pick(dice, places, lambda x: not x.is_deleted() and x.shape in SHAPES and str(x.dtype) in DTYPES, jax.Array)


def numbers(dice):
    return "%r, %r, %d" % (dice.choice(SHAPES), dice.choice(DTYPES), dice.randrange(1 << 20))


@step(STEPS, 8, writes=False)
def jax_create(dice, places):
    how = dice.choice(["jnp.array(mk(%s))", "jnp.array(mk(%s))", "jax.device_put(aligned(%s))", "jax.dlpack.from_dlpack(aligned(%s))"])
    return "%s = %s" % (target(dice), how % numbers(dice))


@step(STEPS, 7, writes=False)
def jax_alias(dice, places):
    """An array over NumPy's memory, which NumPy goes on to write."""
    if dice.random() < 0.4:
        return "%s = aligned(%s)" % (target(dice), numbers(dice))
    found = pick(
        dice, places,
        lambda a: a.shape in SHAPES and str(a.dtype) in DTYPES and a.flags.c_contiguous and a.__array_interface__["data"][0] % 64 == 0
        and a.__array_interface__["data"][0] == aligned_base(a),
    )
    if not found:
        return None
    return "%s = %s" % (target(dice), dice.choice(["jax.dlpack.from_dlpack(%s)", "jnp.array(%s, copy=True).block_until_ready()"]) % found[0])


def aligned_base(a):
    """The address of an array that was made to be aligned; whether others are is chance."""
    top = a
    while isinstance(top.base, np.ndarray):
        top = top.base
    at = top.__array_interface__["data"][0]
    return at + -at % 64 if top.nbytes == a.nbytes + 128 else 0


@step(STEPS, 10)
def jax_compute(dice, places):
    found = some(dice, places)
    if not found:
        return None
    statement = dice.choice([
        "{t} = {s} + 1", "{t} = {s}.at[0].set(7)", "{s} = donate({s})", "{s} = donate({s})", "{t} = donate({s})", "{s}.delete()",
        "{t} = -{s}", "{t} = np.asarray({s})", "{t} = memoryview(np.asarray({s}))", "{t} = np.array({s})", "{t} = jnp.copy({s})", "{t} = {s}", "{t} = np.from_dlpack({s})",
        "{t} = jax.random.key(3)", "{t} = pickle.loads(pickle.dumps({s}))",
    ])
    return statement.format(s=found[0], t=target(dice))
