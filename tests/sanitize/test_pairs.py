"""Every check twice: the broken kernel is reported at the right lines, its sound twin is silent, under every schedule."""

import numpy as np
import pytest
from launching import run
from pairs import PAIRS as FIRST
from pairs import Pair
from pairs_more import MORE

from flydsl.targets.sim import RunReport

PAIRS = [*FIRST, *MORE]


def launch(pair: Pair, body: str, **options: object) -> RunReport:
    a, b = (np.zeros(pair.size, np.int32) for _ in range(2))
    return run(
        pair.text(body), "k", pair.grid, pair.block, a, b, **{"on_finding": "collect", **pair.options, **options}
    )


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: p.name)
def test_broken_kernel_is_reported(pair: Pair) -> None:
    findings = launch(pair, pair.broken).findings
    found = [f for f in findings if f.kind == pair.kind]
    assert found, [str(f) for f in findings]
    lines = {(f.span.line if f.span else None, f.other.line if f.other else None) for f in found}
    assert pair.lines in lines or pair.lines[::-1] in lines, (lines, pair.lines)
    assert found[0].severity == pair.severity
    assert found[0].why and found[0].fix
    assert found[0].block is not None or pair.kind in ("never-written", "never-read")


def test_there_are_at_least_sixty_pairs() -> None:
    assert len(PAIRS) >= 60 and len({p.name for p in PAIRS}) == len(PAIRS)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: p.name)
@pytest.mark.parametrize("schedule", ("lockstep", "ahead", "reverse", "random:7"))
def test_sound_kernel_is_silent(pair: Pair, schedule: str) -> None:
    report = launch(pair, pair.sound, **({} if pair.options else {"schedule": schedule}))
    assert [str(f) for f in report.findings] == []


@pytest.mark.parametrize(
    "pair", [p for p in PAIRS if p.kind in ("race", "missing-wait", "uninitialised")], ids=lambda p: p.name
)
@pytest.mark.parametrize("schedule", ("ahead", "reverse", "random:7"))
def test_verdict_does_not_depend_on_the_schedule(pair: Pair, schedule: str) -> None:
    kinds = {f.kind for f in launch(pair, pair.broken, schedule=schedule).findings}
    assert kinds & {pair.kind, "race", "missing-wait"}


@pytest.mark.parametrize("pair", PAIRS[:3], ids=lambda p: p.name)
def test_a_check_that_is_off_is_silent(pair: Pair) -> None:
    assert launch(pair, pair.broken, checks=frozenset({"bounds", "uninit"})).findings == []


REPORTS = {
    "R025": ["private-never-written", "register-fragment-never-written"],
    "R066": ["tile-loaded-in-part"],
    "R067": ["padded-rows-alias-the-next-block"],
    "R068": ["grid-map-not-a-bijection", "read-past-the-end"],
    "R075": ["second-copy-not-waited-for"],
    "R076": ["offset-wraps-in-32-bits"],
    "R116": ["barrier-for-one-wave", "scratch-of-a-reduction-reused"],
    "R124": ["double-buffer-without-barrier"],
    "R125": ["lds-tile-larger-than-allocated"],
    "R126": ["vector-straddles-the-end"],
}


@pytest.mark.parametrize("report", REPORTS)
def test_public_reports_of_this_kind_have_pairs(report: str) -> None:
    assert set(REPORTS[report]) <= {p.name for p in PAIRS}
