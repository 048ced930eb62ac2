"""Recorded lane maps: files of them written and read, as bases over the bits of lane and item.

Every map here is linear over bits: the place of (lane, item) is the XOR of one (row, column, block) per bit that is set.
A line of a file has `lane` and `item`, the bases, least significant bit first, and under `of` whose map it is: chip,
instruction, kinds of A and B (`-` where the source does not tell them apart) and operand.
"""
import json
from pathlib import Path

Place = tuple[int, int, int]
FIELDS = ("arch", "instruction", "kinds", "operand")


def xor(a: Place, b: Place) -> Place:
    """Return the sum of two places without carries."""
    return a[0] ^ b[0], a[1] ^ b[1], a[2] ^ b[2]


def span(bases: list) -> list[Place]:
    """Return the place of every number that the bits of the bases count."""
    places = [(0, 0, 0)]
    for base in bases:
        places += [xor(place, base) for place in places]
    return places


def table(record: dict) -> dict[tuple[int, int], Place]:
    """Return {(lane, item): (row, column, block)} of a record."""
    lanes, items = span(record["lane"]), span(record["item"])
    return {(lane, item): xor(x, y) for lane, x in enumerate(lanes) for item, y in enumerate(items)}


def bases(places: dict[tuple[int, int], Place]) -> dict:
    """Return the bases of a table.

    Raises   ValueError: the table is not linear, or does not start at (0, 0, 0)
    """
    lanes, items = (max(at[i] for at in places) + 1 for i in (0, 1))
    record = {"lane": [places[1 << i, 0] for i in range(lanes.bit_length() - 1)],
              "item": [places[0, 1 << i] for i in range(items.bit_length() - 1)]}
    if table(record) != places:
        raise ValueError("this map is no XOR of places")
    return record


def write(source: str, records: list[dict]) -> str:
    """Return the text of a file of records (fields arch, instruction, kinds, operand, lane, item): one map a line."""
    owners: dict[str, list[str]] = {}
    for r in records:
        text = json.dumps({"lane": r["lane"], "item": r["item"]})
        owners.setdefault(text, []).append(" ".join(r[f] for f in FIELDS))
    lines = ",\n".join(f'{text[:-1]}, "of": {json.dumps(list(dict.fromkeys(of)))}}}' for text, of in owners.items())
    return f'{{"source": {json.dumps(source)}, "maps": [\n{lines}\n]}}\n'


def read(name: str) -> list[dict]:
    """Return the records of a file beside this one."""
    maps = json.loads((Path(__file__).parent / name).read_text())["maps"]
    return [{**dict(zip(FIELDS, of.split())), "lane": m["lane"], "item": m["item"]} for m in maps for of in m["of"]]
