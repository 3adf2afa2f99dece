import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, i):
        return torch.full((1024,), float(i))


if __name__ == "__main__":
    weights = torch.zeros(1024, 1024)
    loader = DataLoader(Rows(), batch_size=64, num_workers=2, multiprocessing_context="forkserver", persistent_workers=True)
    for epoch in range(2):
        for batch in loader:
            weights += batch.sum()
