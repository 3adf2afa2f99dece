import multiprocessing
import numpy as np


def work():
    pass


weights, biases = np.ones((1024, 1024)), np.ones((1024, 1024))
child = multiprocessing.get_context("fork").Process(target=work)
child.start()
child.join()
weights = weights.copy()  # memory that was made after the fork is shared
