"""The arrays that are handed over: element i is i % 4093, so that whoever gets one can tell."""

import importlib

PERIOD = 4093


LARGE = 256 << 20  # bytes; what is as large does not stay in memory for long where it is written


def numpy_array(n, written):
    import numpy as np

    return np.resize(np.arange(PERIOD, dtype="f4"), n).copy() if written else np.empty(n, dtype="f4")


def torch_array(n, written):
    import torch

    if not written:
        return torch.empty(n)
    return torch.arange(PERIOD, dtype=torch.float32).repeat(n // PERIOD + 1)[:n].clone()


def jax_array(n, written):
    import jax.numpy as jnp

    return jnp.array(numpy_array(n, True)) if written else jnp.zeros(n)


MAKERS = {"numpy": numpy_array, "torch": torch_array, "jax": jax_array}


def make(framework, size):
    """An array of so many bytes, all of them written."""
    return MAKERS[framework](size // 4, True)


def reserve(framework, size):
    """An array as make gives it, but if it is large its memory is not used where that can be avoided."""
    return MAKERS[framework](size // 4, size < LARGE)


WIDTH = 256  # of the layers of a model: weights take 256 KiB, biases 1 KiB


def parameters(n):
    """The first n weights and biases of layers, by name."""
    sizes = {"weight": WIDTH * WIDTH, "bias": WIDTH}
    names = [(f"layers.{i // 2}.{kind}", sizes[kind]) for i, kind in enumerate(("weight", "bias") * (n // 2))]
    return {name: numpy_array(size, True) for name, size in names}


def model(n):
    """A module of PyTorch's with n parameters."""
    import torch

    def layer():
        linear = torch.nn.Linear(WIDTH, WIDTH)
        for parameter in linear.parameters():
            parameter.data = torch_array(parameter.numel(), True).reshape(parameter.shape)
        return linear

    model = torch.nn.Module()
    model.layers = torch.nn.ModuleList(layer() for _ in range(n // 2))
    return model


def survey():
    """The versions of the frameworks that are installed, and why others are not to be had."""
    versions, missing = {}, {}
    for name in MAKERS:
        try:
            versions[name] = importlib.import_module(name).__version__
        except Exception as error:  # a broken installation raises anything
            missing[name] = f"{type(error).__name__}: {error}"
    return {"versions": versions, "missing": missing}
