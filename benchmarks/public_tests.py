#!/usr/bin/env python3
"""Run the reference's public tests against this checkout: `benchmarks/public_tests.py --repo PATH [--suites language,system,unit]`.

PATH is a clone of the public repository, used as input only. Per suite: how many of the tests that pass on the reference's wheel pass here, and
each that does not with its reason from `public_tests_reasons.tsv`. With FLYDSL_SHARED the wheel's baseline and the runner with a made-up GPU
(`fake:` suites) come from there; without it plain pytest runs the files that need no GPU, and all tests that were collected are counted.
Exit status 1: fewer than 90 % pass, or one fails for no listed reason.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from collections import defaultdict

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEFAULT_SUITES = "language,system,unit,fake:system,fake:unit"
CORE_UNIT = ("control", "dispatch", "for_auto", "ifexp", "while", "if_", "typed_arith", "vector", "static_vs_dynamic", "range_dynamic")
PASSED = ("passed", "ran")


def main() -> int:
    """Run and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repo", type=pathlib.Path, default=os.environ.get("FLYDSL_PUBLIC_REPO"), help="clone of the public repository")
    parser.add_argument("--suites", default=DEFAULT_SUITES)
    parser.add_argument("--result", type=pathlib.Path, help="a result file of an earlier run: nothing is run")
    parser.add_argument("--verbose", action="store_true", help="name every test that does not pass")
    options = parser.parse_args()
    if options.repo is None and options.result is None:
        print("not run: give --repo or FLYDSL_PUBLIC_REPO, a clone of the public repository")
        return 0
    tools = shared_tools()
    suites = options.suites.split(",")
    if options.result:
        outcomes = json.loads(options.result.read_text())["tests"]
    elif tools:
        outcomes = run_with_tools(options.repo, suites, tools)
    else:
        outcomes = run_with_pytest(options.repo, [s for s in suites if not s.startswith("fake:")])
    return report(outcomes, baseline(tools, outcomes), suites, options.verbose)


def shared_tools() -> pathlib.Path | None:
    folder = pathlib.Path(os.environ.get("FLYDSL_SHARED") or ROOT.parent / "shared") / "tools"
    return folder if (folder / "peer_suite.py").exists() else None


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join(p for p in (str(ROOT), os.environ.get("PYTHONPATH", "")) if p)
    return {**os.environ, "PYTHONPATH": path, **more}


def run_with_tools(repo: pathlib.Path, suites: list[str], tools: pathlib.Path) -> dict[str, str]:
    """Return outcome by `suite|test id`, each file in a process of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "result.json"
        command = [sys.executable, str(tools / "peer_suite.py"), "--suites", ",".join(suites), "--out", str(out), "--jobs", "1"]
        env = environment(PEER_REPO=str(repo), PEER_PY=sys.executable)
        subprocess.run([*command, "--baseline", str(tools / "peer_baseline.json")], env=env, stdout=subprocess.DEVNULL)
        return json.loads(out.read_text())["tests"]


def run_with_pytest(repo: pathlib.Path, suites: list[str]) -> dict[str, str]:
    """Return outcome by `suite|test id`, without a device: launches are compile-only."""
    outcomes: dict[str, str] = {}
    for suite in suites:
        for file in sorted((repo / "tests" / suite).rglob("test_*.py")):
            with tempfile.TemporaryDirectory() as scratch:
                report_file = pathlib.Path(scratch) / "report.xml"
                name = file.relative_to(repo).as_posix()
                command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "tests/pytest.ini", "--rootdir", "."]
                env = environment(COMPILE_ONLY="1", FLYDSL_RUNTIME_CACHE_DIR="", PYTHONPATH=os.pathsep.join((str(ROOT), str(repo))))
                subprocess.run([*command, f"--junitxml={report_file}", name], cwd=repo, env=env, stdout=subprocess.DEVNULL, timeout=900)
                for case in xml.parse(report_file).iter("testcase") if report_file.exists() else ():
                    tags = {child.tag for child in case}
                    outcome = "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"
                    outcomes[f"{suite}|{name}::{case.get('classname', '').split('.')[-1]}::{case.get('name')}"] = outcome
    return outcomes


def baseline(tools: pathlib.Path | None, outcomes: dict[str, str]) -> set[str]:
    """Return the tests that count: those that pass on the wheel, without what the reference changed since."""
    if tools is None:
        return {test for test, outcome in outcomes.items() if outcome != "skipped"}
    passing = {t for t, o in json.loads((tools / "peer_baseline.json").read_text())["tests"].items() if o in PASSED}
    changed = json.loads((tools / "peer_lost_050.json").read_text())["tests"]
    return passing - {*changed, *(f"fake:{t}" for t in changed)}


def reasons() -> list[tuple[str, str]]:
    lines = (pathlib.Path(__file__).parent / "public_tests_reasons.tsv").read_text().splitlines()
    return [tuple(line.split("\t")) for line in lines if line and not line.startswith("#")]


def report(outcomes: dict[str, str], counted: set[str], suites: list[str], verbose: bool) -> int:
    """Print the table and the lists; return the exit status."""
    table, why, unexplained = reasons(), defaultdict(list), []
    groups = {s: {t for t in counted if t.split("|")[0] == s} for s in suites}
    groups["issue"] = {t for s in suites for t in groups[s] if is_core(t)}
    print(f"{'suite':14}{'wheel':>8}{'here':>8}{'share':>9}")
    shares = {}
    for name, tests in groups.items():
        passed = sum(outcomes.get(t) in PASSED for t in tests)
        shares[name] = passed / len(tests) if tests else 1.0
        print(f"{name:14}{len(tests):8}{passed:8}{100 * shares[name]:8.1f}%")
    print("issue: all of language and system, and of unit the tests of control flow, typed arithmetic and vectors\n")
    for test in sorted(t for s in suites for t in groups[s] if outcomes.get(t) not in PASSED):
        reason = next((r for pattern, r in table if fnmatch.fnmatchcase(test, f"*{pattern}")), None)
        if reason is None:
            unexplained.append(test)
        else:
            why[reason].append(test)
    for reason, tests in sorted(why.items(), key=lambda item: -len(item[1])):
        print(f"{len(tests):5}  {reason}")
        for test in tests if verbose else ():
            print(f"         {test}")
    for test in unexplained:
        print(f"no reason listed: {test}  [{outcomes.get(test, 'not collected')}]")
    return 1 if unexplained or shares["issue"] < 0.9 else 0


def is_core(test: str) -> bool:
    suite, _, name = test.partition("|")
    return suite.split(":")[-1] in ("language", "system") or any(part in name.split("::")[0] for part in CORE_UNIT)


if __name__ == "__main__":
    sys.exit(main())
