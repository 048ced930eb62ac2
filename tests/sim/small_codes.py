"""Small floats written out from their definitions (OCP 8-bit and MX, and the FNUZ forms of gfx942): second source of conversions."""

import numpy as np

# name: (exponent bits, mantissa bits, bias, codes of infinity and NaN)
FORMATS = {
    "fp8": (4, 3, 7, "one NaN"),
    "bf8": (5, 2, 15, "ieee"),
    "fp8_fnuz": (4, 3, 8, "fnuz"),
    "bf8_fnuz": (5, 2, 16, "fnuz"),
    "fp4": (2, 1, 1, "finite"),
}


def decoded(fmt: str) -> np.ndarray:
    """Return the value of every code, in float64."""
    exponent_bits, mantissa_bits, bias, special = FORMATS[fmt]
    width = 1 + exponent_bits + mantissa_bits
    codes = np.arange(1 << width)
    sign = codes >> (width - 1)
    exponent = codes >> mantissa_bits & (1 << exponent_bits) - 1
    fraction = (codes & (1 << mantissa_bits) - 1) / 2.0**mantissa_bits
    value = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - float(bias)))
    value = np.where(sign == 1, -value, value)
    low = codes & (1 << width - 1) - 1
    if special == "one NaN":
        value[low == (1 << width - 1) - 1] = np.nan
    elif special == "ieee":
        top = exponent == (1 << exponent_bits) - 1
        value[top] = np.where(fraction[top] == 0, np.where(sign[top] == 1, -np.inf, np.inf), np.nan)
    elif special == "fnuz":
        value[1 << width - 1] = np.nan
    return value


def encoded(x: np.ndarray, fmt: str) -> np.ndarray:
    """Return the code of each value, to nearest even.

    Beyond the largest value: infinity or NaN where the format has one (FP16_OVFL is 0), else the largest.
    """
    exponent_bits, mantissa_bits, _, special = FORMATS[fmt]
    width = 1 + exponent_bits + mantissa_bits
    values = decoded(fmt)[: 1 << width - 1]
    values = values[np.isfinite(values)]
    step = values[-1] - values[-2]
    reach = np.append(values, values[-1] + step)  # the code after the largest, to which overflow rounds
    x = np.asarray(x, np.float64)
    size = np.minimum(np.abs(np.where(np.isnan(x), 0, x)), reach[-1])
    above = np.clip(np.searchsorted(reach, size), 1, len(reach) - 1)
    below = above - 1
    to_above, to_below = reach[above] - size, size - reach[below]
    code = np.where(to_above < to_below, above, np.where(to_below < to_above, below, np.where(above % 2, below, above)))
    negative = np.signbit(x)
    overflow = code == len(values)
    if special == "finite":
        code = np.minimum(code, len(values) - 1)
    elif special == "fnuz":
        code = np.where(negative & (code > 0), code | 1 << width - 1, code)
        return np.where(overflow | np.isnan(x), 1 << width - 1, code)
    else:
        code = np.where(np.isnan(x), (1 << width - 1) - 1, code)
    return np.where(negative, code | 1 << width - 1, code)
