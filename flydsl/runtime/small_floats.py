"""Numbers of at most 8 bits as launches pass them."""

from __future__ import annotations

import numpy as np

from flydsl.runtime.host_arrays import NUMPY_ELEMENTS

NAMES = {  # element -> name in ml_dtypes; arrays hold the 8-bit ones only
    **{elem: name for name, elem in NUMPY_ELEMENTS.items() if elem.startswith("f8")},
    "f6E2M3FN": "float6_e2m3fn",
    "f6E3M2FN": "float6_e3m2fn",
    "f4E2M1FN": "float4_e2m1fn",
}


def small_float_bits(elem: str, value: float) -> int:
    """Return the bits of a number rounded to a float of at most 8 bits, as ml_dtypes rounds it."""
    import ml_dtypes

    return int(np.array(value).astype(getattr(ml_dtypes, NAMES[elem])).view(np.uint8))
