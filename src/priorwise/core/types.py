"""Array types, task axis first everywhere."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
UIntArray = NDArray[np.uint64]
BoolArray = NDArray[np.bool_]
