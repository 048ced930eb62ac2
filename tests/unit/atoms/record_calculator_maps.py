"""Record what AMD's matrix instruction calculator says of every instruction: calculator_maps.json is this script's output.

    python record_calculator_maps.py PATH/matrix_calculator.py > calculator_maps.json

The calculator (github.com/ROCm/amd_matrix_instruction_calculator) runs as a program, once per instruction and operand, and
prints which matrix element is in which register of which lane. "K" is the index operand of sparse instructions: per group of
four elements of A its (row, group), at item = position among the groups whose index bits the lane holds. A of sparse
instructions counts in such groups too.
"""
import re
import subprocess
import sys

import linear_maps

CHIPS = {"cdna2": "gfx90a", "cdna3": "gfx942", "rdna3": "gfx1100", "rdna4": "gfx1201"}
WAVE = {"cdna2": 64, "cdna3": 64, "rdna3": 32, "rdna4": 32}
ELEMENT = re.compile(r"[ABDK]\[(\d+)\]\[(\d+)\](?:\.B(\d+))?")


def calculator(script: str, *arguments: str) -> list[str]:
    """Return the lines that the calculator prints."""
    return subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=True).stdout.splitlines()


def places(rows: list[list[str]], operand: str, wave: int) -> dict:
    """Return {(lane, item): (row or column, k or column, block)} of a table of the calculator."""
    out = {}
    for lane, cells in enumerate(rows[:wave]):
        item = 0
        for cell in cells:
            found = [tuple(int(x or 0) for x in m) for m in ELEMENT.findall(cell)]
            if operand == "K" or (operand == "A" and len(found) == 4):  # four elements, of which two are in registers
                found = [(found[0][0], found[0][1] // 4, found[0][2])]
            for x, y, block in found:
                out[lane, item] = (y, x, block) if operand == "B" else (x, y, block)
                item += 1
    return out


def record(script: str, arch: str, instruction: str, operand: str) -> dict:
    """Return the record of one operand."""
    option = {"K": "-k"}.get(operand, f"-{operand}")
    wave = ["-w", str(WAVE[arch])] if arch.startswith("rdna") else []
    lines = calculator(script, "-a", arch, "-i", instruction, option, "-M", "--csv", *wave)
    rows = [line.split(",")[1:] for line in lines if re.match(r"\d+,", line)]
    maps = linear_maps.bases(places(rows, operand, WAVE[arch]))
    return {"arch": CHIPS[arch], "instruction": instruction, "kinds": "-", "operand": operand, **maps}


def main() -> None:
    """Print the file."""
    script = sys.argv[1]
    version = calculator(script, "-v")[0]
    records = []
    for arch in CHIPS:
        for line in calculator(script, "-a", arch, "-L"):
            name = line.strip()
            if name.startswith("v_") and "swmmac" not in name:
                operands = "ABDK" if "smfmac" in name else "ABD"
                records += [record(script, arch, name, operand) for operand in operands]
    print(linear_maps.write(version, records), end="")


if __name__ == "__main__":
    main()
