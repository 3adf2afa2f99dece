"""A model of PyTorch that finds the loudest tone of each trace."""
import torch


def tones(traces):
    assert isinstance(traces, torch.Tensor), type(traces)
    return torch.fft.rfft(traces).abs().argmax(dim=1)


def version():
    return torch.__version__
