"""`pilotfish replay RECORD`: what a daemon saw, to its own loop again.

Rule: what is printed says how much of the record could be played, and where something else is decided.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ... import __version__
from ...daemon.assembly import DECIDING
from ...daemon.config import DaemonConfig, with_policy
from ...daemon.record_run import Comparison, PlayedCycle, RecordRun
from ...formats.text import clean, count, fit
from ..kernel_loading import load_simulator
from ..output.documents import print_json
from ..streams import note, show

#: Differences that are printed, and the lines of each side.
SHOWN, SHOWN_LINES = 10, 5
#: Columns of a line of a side.
LINE = 71


def replay_record(folder: Path, config: DaemonConfig | None, policy: str | None, *, as_json: bool) -> int:
    """Play a record and print the outcome; return 1 if the recorded configuration decides otherwise now.

    Args:
        folder: of the record.
        config: whose keys decide; None: those of the record.
        policy: that decides instead of the configured one; None: none does.
        as_json: print a document.

    Raises:
        ConfigError: the record cannot be played.
    """
    load_simulator()
    decided = {} if config is None else {name: getattr(config, name) for name in DECIDING}

    def changed(recorded: DaemonConfig) -> DaemonConfig:
        return with_policy(recorded.model_copy(update=decided), policy)

    is_as_recorded = config is None and policy is None
    differences, others = list[PlayedCycle](), 0
    with RecordRun(folder, None if is_as_recorded else changed) as run:
        for cycle in run.cycles():
            if cycle.differs:
                if len(differences) < SHOWN:
                    differences.append(cycle)
                else:
                    others += 1
        outcome, version = run.comparison, run.version
    if as_json:
        document = asdict(outcome) | {"pilotfish": __version__, "recorded_by": version}
        print_json("record-replay", document | {"differences": [asdict(cycle) for cycle in differences]})
    else:
        _print(folder, outcome, version, differences, others)
    for gap in outcome.gaps:
        note(clean(gap))
    return int(is_as_recorded and outcome.equal < outcome.cycles)


def _print(folder: Path, outcome: Comparison, version: str, differences: list[PlayedCycle], others: int) -> None:
    by = f"recorded by pilotfish {clean(version)}, played by {__version__}"
    show(f"{count(outcome.cycles, 'cycle')}, {count(outcome.decisions, 'decision')}; {by}")
    if outcome.decided_now != outcome.decisions:
        show(f"Played now: {count(outcome.decided_now, 'decision')}.")
    changed = outcome.cycles - outcome.equal
    if not changed:
        show("All cycles decide the same." if outcome.decisions else "Nothing was decided when it was recorded.")
    else:
        show(f"{count(changed, 'cycle')} of {outcome.cycles:,} decide otherwise:")
    for cycle in differences:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(cycle.time))
        show(f"  cycle {cycle.number:,}, {at}")
        _print_side("was", cycle.recorded)
        _print_side("now", cycle.played)
    if others:
        show(f"  and {count(others, 'other cycle')}")
    if outcome.failed:
        show(f"{count(outcome.failed, 'cycle')} had failed, because the resource manager did not answer.")
    if outcome.cut:
        show(f"{count(outcome.cut, 'plan')} had been cut by time_limit or a stop; the replay cuts at the same place.")


def _print_side(word: str, facts: Mapping[str, Any]) -> None:
    lines = [clean(line) for line in facts.get("did", ())]
    if not lines:
        plan = f"a plan by {clean(facts['plan'])}, with other forecasts" if "plan" in facts else "nothing"
        lines = [plan]
    for line in lines[:SHOWN_LINES]:
        show(f"    {word}  {fit(line, LINE)}")
    if len(lines) > SHOWN_LINES:
        show(f"    {word}  and {len(lines) - SHOWN_LINES} more")
