"""What programs do with PyTorch beside computing: its own tests do not come with it."""

import copy
import io
import os
import pickle
import signal
import threading
import unittest

import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info


class Squares(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.full((3, 20000), float(i * i))


class Stream(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        return (torch.full((20000,), float(i)) for i in range(worker.id, 32, worker.num_workers))


class Wrong(Squares):
    def __getitem__(self, i):
        raise ValueError("no such row")


class Killed(Squares):
    def __getitem__(self, i):
        os.kill(os.getpid(), signal.SIGKILL)


def double(queue, back):
    back.put(queue.get() * 2)


def add_one(t):
    t.add_(1)


class TorchSuite(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def model(self):
        return torch.nn.Sequential(torch.nn.Linear(300, 400), torch.nn.ReLU(), torch.nn.Linear(400, 1))

    def test_loader_with_workers(self):
        loader = DataLoader(Squares(), batch_size=8, num_workers=2)
        for _ in range(2):
            values = [float(x[0, 0]) for batch in loader for x in batch]
            self.assertEqual(values, [float(i * i) for i in range(64)])

    def test_loader_with_workers_that_stay(self):
        loader = DataLoader(Squares(), batch_size=8, num_workers=2, persistent_workers=True)
        for _ in range(3):
            self.assertEqual(sum(float(b[:, 0, 0].sum()) for b in loader), sum(float(i * i) for i in range(64)))

    def test_loader_that_spawns(self):
        loader = DataLoader(Squares(), batch_size=32, num_workers=1, multiprocessing_context="spawn")
        self.assertEqual(len(list(loader)), 2)

    def test_loader_that_asks_a_server(self):
        loader = DataLoader(Squares(), batch_size=32, num_workers=1, multiprocessing_context="forkserver")
        self.assertEqual(len(list(loader)), 2)

    def test_loader_in_an_order(self):
        loader = DataLoader(Squares(), batch_size=8, num_workers=2, shuffle=True, generator=torch.Generator().manual_seed(3), prefetch_factor=4)
        alone = DataLoader(Squares(), batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(3))
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(loader, alone)))

    def test_loader_of_a_stream(self):
        loader = DataLoader(Stream(), batch_size=4, num_workers=2, worker_init_fn=lambda n: torch.manual_seed(n))
        self.assertEqual(sorted(float(x[0]) for batch in loader for x in batch), [float(i) for i in range(32)])

    def test_loader_whose_workers_fail(self):
        with self.assertRaisesRegex(ValueError, "no such row"):
            list(DataLoader(Wrong(), num_workers=2))
        with self.assertRaisesRegex(RuntimeError, "exited unexpectedly"):
            list(DataLoader(Killed(), num_workers=1))

    def test_loader_that_is_left(self):
        for _ in range(3):
            iterator = iter(DataLoader(Squares(), batch_size=4, num_workers=2))
            next(iterator)
            del iterator

    def test_gradients(self):
        x = torch.randn(20, 20, dtype=torch.float64, requires_grad=True)
        self.assertTrue(torch.autograd.gradcheck(lambda x: torch.linalg.matrix_exp(x * 0.1), x[:4, :4]))

    def test_training(self):
        losses = []
        for make in (torch.optim.SGD, torch.optim.Adam):
            model, x = self.model(), torch.randn(256, 300)
            optimizer = make(model.parameters(), lr=0.001)
            y = x.sum(1, keepdim=True)
            for _ in range(60):
                optimizer.zero_grad()
                loss = torch.nn.functional.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()
                losses.append(float(loss))
            self.assertLess(losses[-1], losses[-60])

    def test_same_numbers_each_time(self):
        def run():
            torch.manual_seed(7)
            model, x = self.model(), torch.randn(128, 300)
            for _ in range(10):
                loss = model(x).square().mean()
                grads = torch.autograd.grad(loss, list(model.parameters()))
                with torch.no_grad():
                    for p, g in zip(model.parameters(), grads):
                        p -= 0.01 * g
            return torch.cat([p.detach().flatten() for p in model.parameters()])

        torch.set_num_threads(1)
        first = run()
        self.assertTrue(all(torch.equal(first, run()) for _ in range(5)))

    def test_queue_between_processes(self):
        for start in "fork", "spawn":
            context = mp.get_context(start)
            queue, back = context.Queue(), context.Queue()
            child = context.Process(target=double, args=(queue, back))
            child.start()
            t = torch.arange(50000.0)
            queue.put(t)
            self.assertTrue(torch.equal(back.get(timeout=120), t * 2), start)
            child.join(120)
            self.assertEqual(child.exitcode, 0, start)

    def test_shared_memory(self):
        t = torch.zeros(50000).share_memory_()
        children = [mp.get_context("fork").Process(target=add_one, args=(t,)) for _ in range(3)]
        for child in children:
            child.start()
            child.join(120)
            self.assertEqual(child.exitcode, 0)
        self.assertEqual(float(t.min()), 3)
        self.assertEqual(float(t.max()), 3)

    def test_saved_and_loaded(self):
        model = self.model()
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        file.seek(0)
        other = self.model()
        other.load_state_dict(torch.load(file))
        third = pickle.loads(pickle.dumps(copy.deepcopy(model)))
        x = torch.randn(5, 300)
        self.assertTrue(torch.equal(model(x), other(x)))
        self.assertTrue(torch.equal(model(x), third(x)))

    def test_storage_that_comes_and_goes(self):
        t = torch.arange(40000.0)
        for _ in range(50):
            values = t.clone()
            t.untyped_storage().resize_(0)
            t.untyped_storage().resize_(values.untyped_storage().nbytes())
            t.copy_(values)
        self.assertTrue(torch.equal(t, torch.arange(40000.0)))

    def test_threads(self):
        results = []

        def work():
            model = self.model()
            for _ in range(20):
                model(torch.randn(64, 300)).sum().backward()
            results.append(all(p.grad is not None for p in model.parameters()))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [True] * 4)

    def test_fork_beside_threads_that_compute(self):
        stop = threading.Event()
        thread = threading.Thread(target=lambda: [torch.randn(300, 300) @ torch.randn(300, 300) for _ in iter(stop.is_set, True)])
        thread.start()
        try:
            for _ in range(20):
                child = os.fork()
                if child == 0:
                    os._exit(0)
                self.assertEqual(os.waitpid(child, 0)[1], 0)
        finally:
            stop.set()
            thread.join()
