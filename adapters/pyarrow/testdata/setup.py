import numpy as np
import pyarrow as pa
