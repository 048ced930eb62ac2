"""The kernels and the launch helper are those of tests/sim."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "sim"))
