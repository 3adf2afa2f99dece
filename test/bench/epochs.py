"""A training on the CPU whose DataLoader forks its workers at each epoch. It makes as many epochs as it is asked for by lines of JSON
(see internal/bench's Worker), and answers with the mean time of a step of each; asked for "forks", with when it has forked."""

import json
import os
import sys
import time
import warnings

workers, megabytes = map(int, sys.argv[1:])

import torch
from torch.utils.data import DataLoader, TensorDataset

SAMPLES, FEATURES, BATCH = 4096, 1024, 64

warnings.simplefilter("ignore")  # of more workers than processors
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
weights = [p.detach() for p in model.parameters() if p.numel() > 1 << 15]  # the same memory; smaller ones are copied
rest = torch.ones(megabytes << 18)  # float32, which nobody writes to, and no host looks at
forks = []
os.register_at_fork(after_in_parent=lambda: forks.append(time.monotonic_ns()))


def epoch():
    data = TensorDataset(torch.randn(SAMPLES, FEATURES), torch.randint(10, (SAMPLES,)))
    steps, begun = 0, time.perf_counter_ns()
    for x, y in DataLoader(data, batch_size=BATCH, num_workers=workers, multiprocessing_context="fork"):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    return (time.perf_counter_ns() - begun) // steps


answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
print(json.dumps({"Versions": {"torch": torch.__version__}}), file=answers, flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if asked["way"] == "forks":
        took = forks[:]
        forks.clear()
    else:
        took = [epoch() for _ in range(asked["count"])]
    print(json.dumps({"Took": took}), file=answers, flush=True)
