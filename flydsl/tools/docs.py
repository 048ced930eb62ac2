"""Writes the generated pages of docs/: `python -m flydsl.tools.docs [--check]`. With --check nothing is written and stale pages are an error."""

from __future__ import annotations

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def errors_page() -> str:
    """Return docs/errors.md: every code with its texts."""
    from flydsl.diag import FlyWarning, InternalError, MissingTool, Unsupported
    from flydsl.diag.examples import EXAMPLES
    from flydsl.tools.explain import all_errors

    kinds = {FlyWarning: "warning", MissingTool: "missing tool", Unsupported: "unsupported", InternalError: "our fault"}
    lines = ["# Errors", "", "Generated from the catalogue in `flydsl/diag/errors/`; `flydsl explain CODE` prints one.", ""]
    for code, cls in sorted(all_errors().items()):
        kind = next((text for base, text in kinds.items() if issubclass(cls, base)), "author's mistake")
        builtin = next((b.__name__ for b in cls.__mro__ if b.__module__ == "builtins" and b not in (object, Exception)), "")
        lines += [f"## {code}", "", f"*{kind}*; also a `{builtin}`.", "", f"> {cls.what}", ""]
        lines += [f"**Why** {cls.why}", ""] if cls.why else []
        lines += [f"**Fix** {cls.fix}", ""] if cls.fix else []
        example = EXAMPLES.get(code) or cls.example
        if example:
            lines += ["```python", "# before", example[0], "", "# after", example[1], "```", ""]
    return "\n".join(lines)


def environment_page() -> str:
    """Return docs/environment.md: every switch."""
    from flydsl.utils import env

    lines = ["# Environment variables", "", "Declared in `flydsl/utils/env.py`. *Key*: a different value compiles anew.", ""]
    for name, group in env.GROUPS.items():
        lines += [f"## {name}: {type(group).__doc__.strip()}", "", "| variable | default | key | meaning |", "|---|---|---|---|"]
        for option in group.options():
            default = "" if option.default in ("", []) else f"`{option.default}`"
            meaning = f"{option.description} (no effect: {option.unused})" if option.unused else option.description
            lines.append(f"| `{option.env_var}` | {default} | {'yes' if option.in_key else ''} | {meaning} |")
        lines.append("")
    return "\n".join(lines)


def atoms_page() -> str:
    """Return docs/atoms.md: every atom per chip with its lane map."""
    from flydsl.atoms import catalogue

    return "\n".join(catalogue.pages())


PAGES = {"errors.md": errors_page, "environment.md": environment_page, "atoms.md": atoms_page}


def main(argv: list[str] | None = None) -> int:
    """Write or check all pages."""
    parser = argparse.ArgumentParser(prog="python -m flydsl.tools.docs", description="Write the generated pages of docs/ anew.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if a page is stale")
    check = parser.parse_args(argv).check
    stale = []
    for name, make in PAGES.items():
        path = ROOT / "docs" / name
        text = make().rstrip("\n") + "\n"
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if not check:
            path.write_text(text)
            sys.stdout.write(f"wrote docs/{name}\n")
    if check and stale:
        sys.stderr.write(f"stale: {', '.join(stale)}; run `python3 dev.py docs`\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
