"""examples/07_preshuffle_gemm.py with tile 128 x 128 x 64 in f16. The wheel's environment needs `ml_dtypes` for it."""

import importlib.util
import pathlib
import sys

import numpy as np
from vector_add import tensor

path = pathlib.Path(__file__).resolve().parents[2] / "examples" / "07_preshuffle_gemm.py"
spec = importlib.util.spec_from_file_location("example", path)
example = importlib.util.module_from_spec(spec)
sys.modules["example"] = example
spec.loader.exec_module(example)
launch = example.preshuffle_gemm

SIZE, TILE, GROUP = 4096, (128, 128, 64), 16


def arguments() -> tuple:
    matrix, scales = tensor((SIZE, SIZE), np.float16), tensor((SIZE,))
    return matrix, matrix, matrix, scales, scales, SIZE, SIZE, SIZE, TILE, GROUP
