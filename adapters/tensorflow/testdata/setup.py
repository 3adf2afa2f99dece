import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf

symbols = []
tf.function(lambda x: symbols.append(x) or x)(tf.constant([1.0]))
