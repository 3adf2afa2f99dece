"""The arrays that are handed over: element i is i % 4093, so that whoever gets one can tell."""

import importlib

PERIOD = 4093


def numpy_array(n):
    import numpy as np

    return np.resize(np.arange(PERIOD, dtype="f4"), n)


def torch_array(n):
    import torch

    return torch.arange(PERIOD, dtype=torch.float32).repeat(n // PERIOD + 1)[:n].clone()


def jax_array(n):
    import jax.numpy as jnp

    return jnp.array(numpy_array(n))


MAKERS = {"numpy": numpy_array, "torch": torch_array, "jax": jax_array}


def make(framework, size):
    """An array of so many bytes."""
    return MAKERS[framework](size // 4)


def survey():
    """The versions of the frameworks that are installed, and why others are not to be had."""
    versions, missing = {}, {}
    for name in MAKERS:
        try:
            versions[name] = importlib.import_module(name).__version__
        except Exception as error:  # a broken installation raises anything
            missing[name] = f"{type(error).__name__}: {error}"
    return {"versions": versions, "missing": missing}
