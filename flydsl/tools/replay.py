"""`python -m flydsl.tools.replay FOLDER`: run a launch again that `FLYDSL_SIM_DUMP` wrote, with its memory of then.

The exit status is 1 when it has faults.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from flydsl.targets.sim import SimOptions
from flydsl.targets.sim.options import parse_checks
from flydsl.targets.sim.recorded import RecordedLaunch
from flydsl.targets.sim.session import Findings
from flydsl.targets.sim.trace import Trace


def main(argv: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of one launch, or of several")
    parser.add_argument("--checks", help="other checks than then")
    parser.add_argument("--schedule", help="another order of waves than then")
    parser.add_argument("--trace", help="block=0,wave=1: print the values of this wave's lines as they change")
    parser.add_argument("--line", default="", help="source lines of the trace, such as 40-60")
    args = parser.parse_args(argv)
    homes = [args.folder] if (args.folder / "launch.json").exists() else sorted(p.parent for p in args.folder.glob("*/launch.json"))
    if not homes:
        sys.stderr.write(f"there is no launch in {args.folder}\n")
        return 2
    found = Findings()
    for home in homes:
        launch = RecordedLaunch.load(home)
        trace = Trace.parse(args.trace, args.line) if args.trace else None
        checks = parse_checks(args.checks) if args.checks else frozenset(launch.checks)
        report, _ = launch.run(SimOptions(checks, "collect", args.schedule or launch.schedule, trace=trace))
        found.runs.append(report)
        found.add(report.findings)
    sys.stdout.write(f"{found}\n")
    return 1 if found.errors else 0


if __name__ == "__main__":
    sys.exit(main())
