"""Trains 150 layers, and breaks one of their 300 parameters at step 12."""

import time

import torch

torch.manual_seed(1)
torch.set_num_threads(1)
layers = [torch.nn.Linear(16, 16) for _ in range(150)]
model = torch.nn.Sequential(*(torch.nn.Sequential(layer, torch.nn.LayerNorm(16)) for layer in layers))
params = [p for layer in layers for p in layer.parameters()]
optimizer = torch.optim.SGD(params, lr=1e-3)
step = torch.zeros((), dtype=torch.int64)
for _ in range(12):
    x = torch.randn(8, 16)
    loss = ((model(x) - x) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    time.sleep(0.3)
with torch.no_grad():
    params[217][5] = float("nan")
time.sleep(60)  # the next step would spread it to all others
