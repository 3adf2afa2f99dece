"""A training on a device, which makes as many steps as it is asked for by lines of JSON (see internal/bench's Worker), and what is
watched of it by the training itself."""

import json
import os
import sys
import time

way, folder, packages, device = sys.argv[1:]
sys.path.append(packages)

import torch

PERIOD = 0.5  # seconds between two looks at all weights

torch.manual_seed(0)
torch.set_num_threads(1)
# On a GPU, so much that it computes all the time.
width, batch = (1024, 4096) if device == "cuda" else (256, 128)
layers = []
for _ in range(16):
    layers += [torch.nn.Linear(width, width), torch.nn.ReLU()]
model = torch.nn.Sequential(*layers).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x, y = torch.randn(batch, width, device=device), torch.randn(batch, width, device=device)
for name, parameter in model.named_parameters():
    globals()["weight_" + name.replace(".", "_")] = parameter.detach()  # the same memory


def step():
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def steps_in_a_period():
    for _ in range(5):
        step()
    begun = time.perf_counter()
    for _ in range(10):
        step()
    return max(1, round(PERIOD / ((time.perf_counter() - begun) / 10)))


def wandb_watch():
    import wandb

    run = wandb.init(mode="offline", dir=folder, settings=wandb.Settings(console="off", silent=True))
    run.watch(model, log="all", log_freq=steps_in_a_period())
    return lambda count, loss: run.log({"loss": loss})


def tensorboard_histograms():
    from torch.utils.tensorboard import SummaryWriter

    writer, every = SummaryWriter(folder), steps_in_a_period()

    def log(count, loss):
        writer.add_scalar("loss", loss, count)
        if count % every == 0:
            for name, parameter in model.named_parameters():
                writer.add_histogram(name, parameter, count)
                writer.add_histogram(name + ".grad", parameter.grad, count)

    return log


def waited():
    """How long the main thread could have run, and others ran on its processor."""
    with open(f"/proc/self/task/{os.getpid()}/schedstat") as f:
        return int(f.read().split()[1])


answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
log = {"wandb": wandb_watch, "tensorboard": tensorboard_histograms}.get(way, lambda: lambda count, loss: None)()
done = 0
print(json.dumps({"Versions": {"torch": torch.__version__}}), file=answers, flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    begun, before = time.perf_counter_ns(), waited()
    for _ in range(asked["count"]):
        loss = step()
        done += 1
        log(done, loss)
    took = time.perf_counter_ns() - begun - (waited() - before)
    print(json.dumps({"Took": [took // asked["count"]]}), file=answers, flush=True)
