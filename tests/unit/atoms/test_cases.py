"""Recorded answers of the reference compiler to inputs that the shared oracle files lack. `recorded_cases.jsonl`: views
with an alignment or a swizzle, waves along K, nested and adjacent dimensions of tensor DMA, tiles over several warps with
padding. `recorded_random_cases.jsonl`: a sample of random records of every kind, met by every rule that random records met.
"""

import copy
import json
from pathlib import Path

import pytest

from flydsl.atoms import cases
from flydsl.atoms.cases import evaluate
from flydsl.atoms.deviations import DEVIATIONS

HERE = Path(__file__)
RECORDS = [
    json.loads(line)
    for name in ("recorded_cases.jsonl", "recorded_random_cases.jsonl")
    for line in HERE.with_name(name).read_text().splitlines()
]
VERDICTS = [evaluate(record) for record in RECORDS]
AGREED = [i for i, (open_, named) in enumerate(VERDICTS) if RECORDS[i].get("accepted", True) and not named]
ONLY_IN_SHARED_FILES = {"buffer-96-bits", "unsigned-atomic-max-min"}


@pytest.mark.parametrize("number", range(len(RECORDS)))
def test_ours_is_the_recorded_answer_or_a_documented_deviation(number):
    assert VERDICTS[number][0] == []


def test_the_records_meet_every_documented_deviation():
    met = set().union(*(named for _, named in VERDICTS))
    assert met | ONLY_IN_SHARED_FILES == {d.name for d in DEVIATIONS}


def test_most_records_agree_without_a_deviation():
    assert sum(not named for _, named in VERDICTS) > 0.8 * len(RECORDS)


def wrong(record: dict) -> dict:
    """Return the record with one answer changed."""
    out = copy.deepcopy(record)
    if "results" in out:
        name = next(n for n in ("partition_S", "make_fragment_A", "partition_A_static") if out["results"].get(n))
        out["results"][name] = "!fly.memref<f16, global, 1:1>"
    elif "descriptor" in out:
        out["descriptor"]["0"]["groups"][1][0] = "0xdeadbeef"
    elif "coord_tensor" in out:
        out["coord_tensor"] = "!fly.coord_tensor<(0), (7):(1E0)>"
    elif "shape_mnk" in out:
        out["tv_layout_A"] = "(64,5):(1,64)"
    else:
        out["tv_layout_src"] = "(1,77):(1,1)"
    return out


@pytest.mark.parametrize("number", AGREED)
def test_a_changed_answer_is_reported(number):
    assert evaluate(wrong(RECORDS[number]))[0]


@pytest.mark.parametrize("accepted", [True, False])
@pytest.mark.parametrize("family", ["cdna5.tensor_load", "gfx1250.tdm", "buffer_atomic", "universal_atomic", "lds_read_trans"])
def test_a_changed_verdict_is_reported(family, accepted):
    record = next(
        r for r in RECORDS
        if r.get("family") == family and r["accepted"] == accepted and r.get("error_kind") != "abort" and not evaluate(r)[1]
    )  # fmt: skip
    assert ("accepted", accepted, not accepted) in evaluate({**record, "accepted": not accepted})[0]


COPY = next(r for r in RECORDS if r.get("kind") == "copy" and not evaluate(r)[1])
ATOM = next(r for r in RECORDS if r.get("family") == "universal_copy" and not evaluate(r)[1])
GOOD = json.dumps(COPY)


def verdict(tmp_path, capsys, text: str | bytes) -> tuple[int, list[str]]:
    """Return (exit status, printed lines) of the command on a file with this text."""
    path = tmp_path / "cases.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    status = cases.main([str(path)])
    return status, capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("text, last", [
    (f"{GOOD}\n{json.dumps(ATOM)}\n", "agree 2 of 2, documented deviations 0"),
    (f"\n# a comment\n  // another\n\r\n{GOOD}\r\n\r\n{GOOD}", "agree 2 of 2, documented deviations 0"),
    (b"\xef\xbb\xbf" + GOOD.encode(), "agree 1 of 1, documented deviations 0"),
    (json.dumps({**COPY, "note": {"by": "☃"}}, ensure_ascii=False), "agree 1 of 1, documented deviations 0"),
    ("", "agree 0 of 0, documented deviations 0"),
])  # fmt: skip
def test_what_is_no_record_is_not_counted(tmp_path, capsys, text, last):
    status, lines = verdict(tmp_path, capsys, text)
    assert (status, lines[-1]) == (0, last)


@pytest.mark.parametrize("line, reported", [
    ('{"kind": ', "line 2: line"),
    ("[1, 2]", "a JSON list"),
    ("7" * 5000, "not JSON"),
    ("[" * 100_000, "not JSON"),
    (b'{"family": "\xff"}', "line 2: record"),
    ("{}", "no field 'family'"),
    ('{"kind": "copy"}', "no field 'tiled'"),
    (json.dumps({**COPY, "tensor": "(" * 5000}), "line 2: record"),
    (json.dumps({**COPY, "tensor": f"!fly.memref<f16, global, ({'9' * 5000},2):(1,2)>"}), "line 2: record"),
    (json.dumps({**COPY, "tiled": COPY["tiled"].replace("fly", "łly")}), "FLY_ATOM_SYNTAX"),
    (json.dumps({**COPY, "results": {**COPY["results"], "partition_Z": "1:1"}}), "line 2: partition_Z"),
    (json.dumps({**ATOM, "chip": "gfx9999"}), "line 2: accepted"),
    (json.dumps({**ATOM, "elem": "☃"}), "line 2: accepted"),
])  # fmt: skip
def test_a_bad_line_is_a_disagreement_that_stops_nothing(tmp_path, capsys, line, reported):
    encoded = line if isinstance(line, bytes) else line.encode()
    status, lines = verdict(tmp_path, capsys, b"\n".join([GOOD.encode(), encoded, GOOD.encode()]))
    assert (status, lines[-1]) == (1, "agree 2 of 3, documented deviations 0")
    assert any(reported in printed for printed in lines)


def test_where_the_reference_died_any_answer_will_do():
    results = {**COPY["results"], "partition_S": None}
    assert evaluate({**COPY, "results": results})[0] != []
    assert evaluate({**COPY, "results": results, "errors": {"partition_S": "abort"}})[0] == []


def test_files_that_cannot_be_read(tmp_path, capsys):
    good = tmp_path / "good.jsonl"
    good.write_text(GOOD)
    assert cases.main([str(tmp_path / "absent.jsonl"), str(good)]) == 2
    assert cases.main([]) == 2
    printed = capsys.readouterr()
    assert "agree 1 of 1, documented deviations 0" in printed.out and "absent.jsonl" in printed.err
