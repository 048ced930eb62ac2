"""Tensors whose memory does not hold what they show."""

import inspect

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag import TensorDtype, TensorNegated

torch = pytest.importorskip("torch", reason="torch is not installed (pip install -e '.[torch]')")


@flyc.kernel
def copy_kernel(src: fx.Tensor, dst: fx.Tensor):
    dst[fx.thread_idx.x] = src[fx.thread_idx.x]


@flyc.jit
def copy(src: fx.Tensor, dst: fx.Tensor):
    copy_kernel(src, dst).launch(grid=1, block=4)


def conjugate() -> torch.Tensor:
    return torch.complex(torch.zeros(4), torch.arange(1.0, 5.0)).conj()


def test_a_tensor_with_the_negative_bit_is_refused() -> None:
    negated, out = conjugate().imag[:1], torch.zeros(4)
    assert negated.is_neg()
    with pytest.raises(TensorNegated) as caught:
        flyc.from_dlpack(negated)
    assert "the memory of this tensor holds the negatives" in str(caught.value)
    with pytest.raises(TensorNegated) as caught:
        copy(negated, out)
    line = inspect.getsourcelines(test_a_tensor_with_the_negative_bit_is_refused)[1]
    assert "the memory of `src` holds the negatives of its values" in str(caught.value)
    assert "pass `src.resolve_neg()`" in str(caught.value)
    assert caught.value.span.file == __file__ and line < caught.value.span.line < line + 10


def test_resolved_it_is_read_as_it_shows() -> None:
    out = torch.zeros(4)
    copy(conjugate().imag.resolve_neg(), out)
    np.testing.assert_array_equal(out.numpy(), [-1, -2, -3, -4])


def test_after_a_plain_tensor_of_the_same_form() -> None:
    """The fast path that the first call made does not take it."""
    out = torch.zeros(4)
    copy(torch.ones(4), out)
    with pytest.raises(TensorNegated):
        copy(conjugate().imag, out)
    with pytest.raises(TensorNegated):
        flyc.compile(copy, torch.ones(4), out)(conjugate().imag, out)


def test_complex_tensors_have_no_element_type_conjugated_or_not() -> None:
    for given in (conjugate(), conjugate().resolve_conj()):
        with pytest.raises(TensorDtype, match="complex64"):
            copy(given, torch.zeros(4))
