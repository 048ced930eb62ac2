"""Recorded answers of the reference compiler to inputs that the shared oracle files lack: views with an alignment or a
swizzle, waves along K, nested and adjacent dimensions of tensor DMA, tiles over several warps with padding.
"""

import copy
import json
from pathlib import Path

import pytest

from flydsl.atoms.cases import evaluate

RECORDS = [json.loads(line) for line in Path(__file__).with_name("recorded_cases.jsonl").read_text().splitlines()]
NAMED = {"static-thread-in-mma", "atom-wider-than-a-thread", "wmma-scale-32x16", "wmma-gfx1250-16-bit-C",
         "waves-along-k-in-C", "tensor-padding-fields", "tdm-padding-pitch", "tdm-state-beyond-rank", "tdm-more-warps-than-elements",
         "buffer-wider-than-128-bits"}  # fmt: skip


@pytest.mark.parametrize("number", range(len(RECORDS)))
def test_ours_is_the_recorded_answer_or_a_documented_deviation(number):
    open_, named = evaluate(RECORDS[number])
    assert open_ == []
    assert named <= NAMED


def test_most_records_agree_without_a_deviation():
    assert sum(not evaluate(r)[1] for r in RECORDS) > 0.6 * len(RECORDS)


def wrong(record: dict) -> dict:
    """Return the record with one answer changed."""
    out = copy.deepcopy(record)
    if "results" in out:
        name = next(n for n in ("partition_S", "make_fragment_A") if n in out["results"])
        out["results"][name] = "!fly.memref<f16, global, 1:1>"
    elif "descriptor" in out:
        out["descriptor"]["0"]["groups"][1][0] = "0xdeadbeef"
    else:
        out["coord_tensor"] = "!fly.coord_tensor<(0), (7):(1E0)>"
    return out


@pytest.mark.parametrize("number", [i for i, r in enumerate(RECORDS) if r.get("accepted", True) and not evaluate(r)[1]])
def test_a_changed_answer_is_reported(number):
    assert evaluate(wrong(RECORDS[number]))[0]


def test_a_changed_verdict_is_reported():
    record = next(r for r in RECORDS if r.get("family") == "cdna5.tensor_load" and r["accepted"])
    assert evaluate({**record, "accepted": False})[0] == [("accepted", True, False)]
