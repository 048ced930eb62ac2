"""docs/sanitizers.md shows kernels and outputs that are real."""

import sys

import doc_kernels
import pytest


@pytest.mark.parametrize("name", doc_kernels.KERNELS)
def test_the_broken_kernel_is_reported_and_the_sound_one_silent(name: str) -> None:
    assert doc_kernels.findings(name, True)
    assert [str(f) for f in doc_kernels.findings(name, False)] == []


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no columns, which the page shows")
def test_the_page_shows_what_is_printed() -> None:
    page = doc_kernels.PAGE.read_text()
    assert doc_kernels.update(page) == page, "run: python tests/sanitize/doc_kernels.py"
