"""Trains a model on what a sensor measures, until the sensor breaks. It knows nothing of ndbridge."""

import torch


def measurements():
    generator = torch.Generator().manual_seed(0)
    count = 0
    while True:
        x = torch.rand(64, 16, generator=generator) + 0.01
        count += 1
        if count == 3000:
            x[3, 7] = -1.0  # has no logarithm
        yield x


def main():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step, x in enumerate(measurements()):
        wanted = x.log().mean(dim=1, keepdim=True)
        loss = (model(x) - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
