"""Atoms and partitions against recorded behaviour of the reference: every record, and the tables of the spec."""

import io
import json
import os
from collections import Counter
from pathlib import Path

import pytest

from flydsl.atoms import cache, cases
from flydsl.atoms.deviations import DEVIATIONS

SHARED = Path(os.environ.get("FLYDSL_SHARED", Path(__file__).resolve().parents[3] / "shared"))
DATA = SHARED / "data"
RECORDED = sorted((Path(__file__).parents[1] / "unit" / "atoms").glob("recorded_*cases.jsonl"))
FILES = ("partition_cases.jsonl", "mma_atoms.jsonl", "copy_atoms.jsonl")

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no oracle data at {DATA} (set FLYDSL_SHARED)")


@pytest.mark.parametrize("name", FILES)
def test_every_record(name):
    out = io.StringIO()
    status = cases.run(str(DATA / name), out)
    assert status == 0, out.getvalue()[-3000:]
    assert out.getvalue().splitlines()[-1].startswith("agree ")


def test_deviations_are_met_and_named_once():
    met = Counter()
    for file in (*(DATA / name for name in FILES), *RECORDED):
        for line in file.read_text().splitlines():
            met.update(cases.evaluate(json.loads(line))[1])
    names = [d.name for d in DEVIATIONS]
    assert len(set(names)) == len(names)
    assert set(met) == set(names), "a deviation that no record meets is not a deviation"


@pytest.mark.parametrize(
    "field, wrong",
    [
        ("tv_layout_A", "((16,4),4):((1,64),17)"),
        ("rocdl", "rocdl.mfma.f32.16x16x16f17"),
        ("isa", ["v_mfma_x"]),
        ("values_per_thread", [4, 4, 5]),
        ("thr_layout", "32:1"),
    ],
)
def test_a_wrong_record_is_noticed(field, wrong):
    """The evaluator must not agree with anything: one field changed, one disagreement."""
    lines = (DATA / "mma_atoms.jsonl").read_text().splitlines()
    record = next(r for r in map(json.loads, lines) if r["rocdl"] == "rocdl.mfma.f32.16x16x16f16")
    record[field] = wrong
    open_, named = cases.evaluate(record)
    assert [c[0] for c in open_] == [field] and not named


def test_a_wrong_partition_is_noticed():
    for line in (DATA / "partition_cases.jsonl").read_text().splitlines()[::16]:
        record = json.loads(line)
        for name, text in record["results"].items():
            if isinstance(text, str) and text.endswith(">"):
                changed = dict(record, results=dict(record["results"], **{name: text[:-1] + "7>"}))
                assert name in [c[0] for c in cases.evaluate(changed)[0]], (name, record["tiled"])


def test_cache_modifiers_are_written_as_recorded():
    checked = 0
    for line in (DATA / "copy_atoms.jsonl").read_text().splitlines():
        r = json.loads(line)
        if r["family"] != "buffer_copy" or not r["isa"]:
            continue
        access = [i for i in r["isa"] if i.startswith("buffer_")]
        for text in access:
            modifiers = text.split("offen", 1)[1].strip()
            assert modifiers == cache.text(r["chip"], r["cache"], "load" in text.split()[0]), (r["chip"], text)
            checked += 1
    assert checked > 150


def test_golden_mma_layouts():
    """spec/golden_mma.tsv: every layout that the reference prints for an atom which exists."""
    from flydsl.atoms import MFMAScale, WMMAScale, mfma, wmma

    names = {
        "Float16": "f16",
        "BFloat16": "bf16",
        "Float32": "f32",
        "Float64": "f64",
        "Int8": "i8",
        "Uint8": "ui8",
        "Int4": "i4",
        "Int32": "i32",
        "Float8E4M3FN": "f8E4M3FN",
        "Float8E5M2": "f8E5M2",
        "Float8E4M3FNUZ": "f8E4M3FNUZ",
        "Float6E2M3FN": "f6E2M3FN",
        "Float6E3M2FN": "f6E3M2FN",
        "Float4E2M1FN": "f4E2M1FN",
    }
    scope = {"fx": type("fx", (), names)}
    agreed = refused = 0
    for line in (SHARED / "spec" / "golden_mma.tsv").read_text().splitlines():
        if line.startswith("#"):
            continue
        chip, call, want = line.split("\t")[:3]
        kind, arguments = call.removeprefix("fx.rocdl.").removeprefix("cdna4.").rstrip(")").split("(", 1)
        args, kwargs = eval(f"(lambda *a, **k: (a, k))({arguments})", scope)
        kwargs = {("b" if k == "elem_ty_b" else k): v for k, v in kwargs.items()}

        def build():
            if kind == "MFMA":
                return mfma(*args, **kwargs)
            if kind == "WMMA":
                return wmma(chip, *args, **kwargs)
            m, n, k, a, *b = args
            cls = MFMAScale if kind.startswith("MFMA") else WMMAScale
            return cls(m, n, k, a, b[0] if b else a, "f32", **kwargs)

        try:
            op = build()
        except ValueError:
            assert "INVALID" in want, line
            refused += 1
            continue
        if "INVALID" in want:  # we go further: f64, and OCP bf8 on chips that decode it
            assert args[3] in ("f64", "f8E5M2") and kind == "MFMA", line
            continue
        if kind == "MFMA" and op._find() is None:
            continue  # the reference prints layouts for shapes that no chip has
        layouts = ", ".join(f"layout<{x}>" for x in (op.layout_a, op.layout_b, op.layout_c))
        if kind == "WMMAScale" and op.m == 32:
            continue  # deviation wmma-scale-32x16
        if kind == "WMMA" and chip == "gfx1250" and op.acc in ("f16", "bf16"):
            continue  # deviation wmma-gfx1250-16-bit-C
        assert f"layout<{op.thr_layout}>" in want and layouts in want, line
        agreed += 1
    assert agreed > 60 and refused > 40
