"""Numbers of at most 8 bits as launches pass them."""

from __future__ import annotations

import numpy as np

NAMES = {
    "f8E5M2": "float8_e5m2",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E4M3": "float8_e4m3",
    "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "f8E8M0FNU": "float8_e8m0fnu",
    "f6E2M3FN": "float6_e2m3fn",
    "f6E3M2FN": "float6_e3m2fn",
    "f4E2M1FN": "float4_e2m1fn",
}


def small_float_bits(elem: str, value: float) -> int:
    """Return the bits of a number rounded to a float of at most 8 bits, as ml_dtypes rounds it."""
    import ml_dtypes

    return int(np.array(value).astype(getattr(ml_dtypes, NAMES[elem])).view(np.uint8))
