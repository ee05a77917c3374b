"""Run the checks: `python -m tests.lint` from the root of a checkout. Exit code 1 if one finds something."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

from tests.lint import dead_code, layout, local_names, words


def main() -> int:
    """Print every finding, one line each."""
    gc.disable()  # it would look at the syntax trees of all files again and again
    root = Path(__file__).resolve().parents[2]
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root, stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    files = [name for name in listing.stdout.splitlines() if (root / name).is_file()]
    findings = [finding for part in (layout, dead_code, words, local_names) for finding in part.check(root, files)]
    print("\n".join(findings) or f"tests.lint: {len(files)} files, nothing found")
    return 1 if findings or not files else 0


if __name__ == "__main__":
    sys.exit(main())
