"""Timing and printing of benchmarks. Rule: every figure is labelled with its statistic; nothing is asserted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from pilotfish.simulate.queue_policies.policy_specs import Easy, OnNodes, Policy, Strict, parse


def timed(call: Callable[[], object], repeats: int, setup: Callable[[], object] | None = None) -> list[float]:
    """Return the seconds of each of `repeats` calls, without the `setup` before each."""
    seconds = []
    for _ in range(repeats):
        if setup is not None:
            setup()
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return seconds


def ms(seconds: float) -> str:
    """Format a time in milliseconds with three significant digits."""
    return number(seconds * 1e3)


def number(value: float) -> str:
    """Format a number with three significant digits and thousands separators, without an exponent."""
    if value >= 1000:
        return f"{value:,.0f}"
    digits = 3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{digits}f}"


def heading(text: str) -> None:
    """Print the heading of a benchmark."""
    print(f"\n## {text}\n", flush=True)


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print aligned columns, the first to the left, the others to the right."""
    cells = [[str(cell) for cell in row] for row in (headers, *rows)]
    width = [max(len(row[i]) for row in cells) for i in range(len(headers))]
    for place, row in enumerate(cells):
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, width, strict=True))))
        if place == 0:
            print("  ".join("-" * w for w in width))
    print(flush=True)


def simple_policy(text: str) -> Policy:
    """Return the policy of a SPEC, one that places no job on nodes."""
    policy = parse(text)
    assert isinstance(policy, Policy)
    return policy


def on_nodes_policy(text: str) -> OnNodes | Easy | Strict:
    """Return the policy of a SPEC, one that can place jobs on shared nodes."""
    policy = parse(text)
    assert isinstance(policy, OnNodes | Easy | Strict)
    return policy
