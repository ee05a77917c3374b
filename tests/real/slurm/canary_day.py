"""Play the same day on a real Slurm with a fast clock: in shadow, live, and live with a canary of half; compare them.

    python tests/real/slurm/canary_day.py shadow FOLDER
    python tests/real/slurm/canary_day.py live FOLDER
    python tests/real/slurm/canary_day.py canary FOLDER
    python tests/real/slurm/canary_day.py compare FOLDER

Slurm, its jobs and pilotfish share the fast clock. In shadow Slurm is alone; on the other days job_submit.lua holds
every job while the daemon is live. All days have the same submissions and run times. A forecast is a replay of the day
in shadow: with all jobs handed over, or those that the canary drew later, and with the delays of placements that the
daemon measured on that other day, because they depend on what else this machine does. Needs root, Slurm and faketime. A day of 250
jobs takes about 25 minutes; two may run at the same time.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2]), *(str(HERE.parents[number]) for number in (1, 0)), str(HERE)]

import fast_slurm
import guardian
from fast_slurm import FastSlurm
from rule_sites import PRIORITIES, USERS
from slurm_lua import PLUGIN, SCRIPT

from pilotfish.cli.score.measured_delay import measured_delay
from pilotfish.daemon.canary.comparison import stratum_of
from pilotfish.daemon.canary.groups import Group
from pilotfish.daemon.state.journal import Journal
from pilotfish.daemon.state.members import Member
from pilotfish.formats.site.site_folder import read_site
from pilotfish.simulate.arrays import Array
from pilotfish.simulate.results.group_contrast import GroupContrast, group_contrast
from pilotfish.simulate.slurm.handed_order import Handling, ordered_jobs
from pilotfish.simulate.slurm.ordered_jobs import OrderedJobs
from pilotfish.simulate.slurm.site import Site
from pilotfish.simulate.slurm.site_effect import Contrast, Draws
from pilotfish.simulate.slurm.site_outcome import SiteOutcome, recorded_outcome, replayed_outcome
from pilotfish.simulate.slurm.start_delay import NO_DELAY, StartDelay
from pilotfish.simulate.slurm.twin import replay_site

NODES, CORES = 8, 4
RULES = f"{PRIORITIES}\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n"
POLICY, ORDER = "easy:order=sjf", "sjf"
#: How long job_submit.lua lets a job wait for pilotfish, and mean run time, fast seconds.
HOLD_S, RUN_S = 3600, 600.0
CPUS = (1, 1, 2, 2, 4, 4, 8, 16)
PILOTFISH = (sys.executable, "-m", "pilotfish.cli")
REPLAYS = 20
#: What each day has in its configuration. The guard would judge forecasts by time limits, which say little here.
MODES = {
    "shadow": "mode: shadow",
    "live": "guard: {enabled: false}",
    "canary": "guard: {enabled: false}\nhandover: {share: 50%}",
}


class DaySlurm(FastSlurm):
    """A site of one day; `alive`: heartbeat of the daemon, for which job_submit.lua holds every job; None: none is held."""

    def __init__(self, path: Path, speed: float, alive: Path | None) -> None:
        shapes = [f"CPUs={CORES} Sockets=1 CoresPerSocket={CORES} RealMemory=4000"] * NODES
        super().__init__(path, RULES + PLUGIN * bool(alive), (), shapes, USERS, speed)
        self.alive = alive or Path()

    def _lay_out(self) -> None:
        super()._lay_out()
        text = SCRIPT.read_text()
        changes = {
            "PARTITIONS = {}": "PARTITIONS = {main = true}", "HOLD_S = 600": f"HOLD_S = {HOLD_S}",
            '"/run/pilotfish/heartbeat"': f'"{self.alive}"', 'UNHELD = "/run/pilotfish/unheld"': 'UNHELD = ""',
            'ASKED = "/run/pilotfish-asked/job"': 'ASKED = ""',
        }  # fmt: skip
        for before, after in changes.items():
            assert before in text, before
            text = text.replace(before, after, 1)
        self.config.with_name("job_submit.lua").write_text(text)


def submissions(seed: int, number: int, between_s: float) -> Iterator[tuple[float, str]]:
    """Yield (seconds after the first, arguments of sbatch) of mixed jobs, a little more than the nodes can take."""
    draw, moment = random.Random(seed), 0.0
    for _ in range(number):
        run = min(3600, max(60, int(draw.expovariate(1 / RUN_S))))
        limit = max(2, round(run * draw.choice((1.2, 2, 4)) / 60))
        yield moment, f"-n{draw.choice(CPUS)} -t{limit} --uid={draw.choice(('games', 'news'))} --wrap='sleep {run}'"
        moment += draw.expovariate(1 / between_s)


def play(folder: Path, what: str, jobs: Sequence[tuple[float, str]], speed: float, wide_nodes: int) -> None:
    """Let a day happen, and keep its record, its journal and its cards in a folder."""
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="day-", dir=guardian.folder(), ignore_cleanup_errors=True) as place:
        slurm = DaySlurm(Path(place) / "slurm", speed, None if what == "shadow" else folder / "heartbeat")
        try:
            slurm.up()
            _day(slurm, folder, jobs, what, wide_nodes)
        finally:
            slurm.down()


def _day(slurm: DaySlurm, folder: Path, jobs: Sequence[tuple[float, str]], what: str, wide_nodes: int) -> None:
    (folder / "cluster.yaml").write_text(slurm.run(*PILOTFISH, "cluster", "--adapter", "slurm") + "\n")
    adapter = (
        f"adapter: {{name: slurm, options: {{partitions: [main], max_defer_s: {HOLD_S}, wide_nodes: {wide_nodes}}}}}"
    )
    mode = MODES[what]
    config = folder / "pilotfish.yaml"
    config.write_text(
        "schema: pilotfish/daemon/v1\ncluster: cluster.yaml\nstate_dir: state\nmetrics: {enabled: false}\n"
        f"policy: {POLICY}\ncycle_seconds: 10\nsocket: {{path: {folder / 's'}}}\naccess: {{root: true}}\n"
        f"score: {{enabled: false}}\n{mode}\n{adapter}\n"
    )
    with (folder / "log").open("w") as log:
        daemon = subprocess.Popen([*PILOTFISH, "daemon", "--config", str(config)], env=slurm._surroundings() | {"RUNTIME_DIRECTORY": str(folder)}, stdout=log, stderr=log, cwd=HERE.parents[3])  # fmt: skip
    try:
        slurm.until(lambda: (folder / "s").exists(), "the daemon")
        _submit(slurm, jobs)
        while slurm.run("squeue", "--noheader"):
            assert daemon.poll() is None, (folder / "log").read_text()
            time.sleep(2.0)
        time.sleep(10.0)  # accounting, and the daemon, hear of the last ends
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(60)
    slurm.run(*PILOTFISH, "site", "record", str(folder / "site"), "--since", "1d")
    words = ("score", "--config", str(config), "--json")
    (folder / "card.json").write_text(slurm.run(*PILOTFISH, *words, "--hold", str(HOLD_S), "--since", "1d"))
    if what == "canary":
        (folder / "canary.json").write_text(slurm.run(*PILOTFISH, *words, "--canary"))


def _submit(slurm: DaySlurm, jobs: Sequence[tuple[float, str]]) -> None:
    begin = slurm.now()
    for place, (moment, words) in enumerate(jobs):
        while (now := slurm.now()) < begin + moment:
            time.sleep(max(0.0, (begin + moment - now) / slurm.speed))
        number = slurm.run("sh", "-c", f"sbatch --parsable -J j{place:04d} -o /dev/null -D /tmp {words}")
        assert int(number) == place + 1, "the ids are those of the other day"


def compare(folder: Path, wide_nodes: int) -> None:
    """Print how far the twin is from the day in shadow, and its forecasts from the days live and in the canary."""
    site = read_site(folder / "shadow/site")
    recorded, twin = recorded_outcome(site), _replayed(site, None)
    print(f"mean wait, s: shadow {_mean([recorded]):.0f}, twin {_mean(twin):.0f}, replays +- {_spread(twin):.0f}")
    if (folder / "live").exists():
        live = recorded_outcome(read_site(folder / "live/site"))
        forecast, delay = _forecast(folder / "live", site, np.zeros(len(site.jobs), int), wide_nodes)
        print(f"mean wait, s: live {_mean([live]):.0f}, forecast {_mean(forecast):.0f}, {delay}")
        measured, expected = _difference(site, [recorded], [live]), _difference(site, twin, forecast)
        print(f"live minus shadow, s: {_interval(measured)}; forecast {_interval(expected)}")
    if (folder / "canary").exists():
        _compare_canary(folder, site, twin, wide_nodes)


def _forecast(day: Path, site: Site, reasons: Array, wide_nodes: int) -> tuple[list[SiteOutcome], str]:
    """Return replays with jobs handed over, and the delay that its daemon measured on a day, in words."""
    delay = measured_delay(day / "state" / "delays.json")
    handed = ordered_jobs(site, ORDER, reasons, Handling(HOLD_S, wide_nodes, delay))
    low, high = delay.within_s
    return _replayed(site, handed, delay), f"a placement {delay.mean_s:.0f} ({low:.0f} to {high:.0f}), {delay.source}"


def _difference(site: Site, before: Sequence[SiteOutcome], after: Sequence[SiteOutcome]) -> Contrast:
    """Return the difference of mean waits as the card does, with its interval."""
    waits = [np.array([one.wait_s for one in side]) for side in (before, after)]
    return Draws(site, len(before), 0).distribution(waits, ~np.isnan(np.concatenate(waits)).any(axis=0)).mean


def _compare_canary(folder: Path, site: Site, twin: Sequence[SiteOutcome], wide_nodes: int) -> None:
    with closing(Journal(folder / "canary/state/journal.sqlite", in_memory=True)) as journal:
        members = {one.key: one for one in journal.members()}
    card = json.loads((folder / "canary/canary.json").read_text())
    drawn = [members.get(f"slurm/{job.id}") for job in site.jobs]
    reasons = np.array([int(one is None or one.side != Group.CANARY) for one in drawn])
    measured = recorded_outcome(read_site(folder / "canary/site"))
    forecast, delay = _forecast(folder / "canary", site, reasons, wide_nodes)
    print(f"canary: {card['jobs']}, control group held {card['hold_s']:.1f} s in the mean, {delay}")
    sides = {
        "shadow": [recorded_outcome(site)], "twin": twin, "forecast": forecast, "canary day": [measured],
    }  # fmt: skip
    for name, outcomes in sides.items():
        print(f"{name:<10} wait, canary minus control, s: {_words([_contrast(one.wait_s, drawn) for one in outcomes])}")


def _replayed(site: Site, handed: OrderedJobs | None, delay: StartDelay = NO_DELAY) -> list[SiteOutcome]:
    def late(seed: int) -> OrderedJobs | None:
        return handed and replace(handed, seen_s=delay.drawn(len(site.jobs), seed))

    return [replayed_outcome(site, replay_site(site, seed, handed=late(seed))) for seed in range(REPLAYS)]


def _mean(outcomes: Sequence[SiteOutcome]) -> float:
    return float(np.mean([np.nanmean(one.wait_s) for one in outcomes]))


def _spread(outcomes: Sequence[SiteOutcome]) -> float:
    return float(np.std([np.nanmean(one.wait_s) for one in outcomes]))


def _interval(contrast: Contrast) -> str:
    return f"{contrast.difference:+.0f} ({contrast.low:+.0f} to {contrast.high:+.0f})"


def _contrast(values: Array, drawn: Sequence[Member | None]) -> GroupContrast:
    pairs = [(one, value) for one, value in zip(drawn, values, strict=True) if one is not None and one.compared]
    numbers = dict[object, int]()
    strata = [numbers.setdefault(stratum_of(one), len(numbers)) for one, _ in pairs]
    is_canary = np.array([one.side == Group.CANARY for one, _ in pairs])
    contrast = group_contrast(np.array([value for _, value in pairs]), is_canary, np.array(strata))
    assert contrast is not None, "the canary has drawn both groups"
    return contrast


def _words(contrasts: Sequence[GroupContrast]) -> str:
    difference, low, high = np.mean([(one.difference, one.low, one.high) for one in contrasts], axis=0)
    return f"{difference:+.0f} ({low:+.0f} to {high:+.0f})"


def main() -> None:
    """Play a day, or compare both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=(*MODES, "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=250)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--speed", type=float, default=20.0, help="seconds of the fast clock in a second")
    parser.add_argument("--between", type=float, default=80.0, help="mean time between submissions, fast seconds")
    parser.add_argument("--wide-nodes", type=int, default=4, help="adapter.options.wide_nodes of pilotfish")
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.what == "compare":
        compare(folder, options.wide_nodes)
        return
    if why := fast_slurm.missing():
        sys.exit(f"no real Slurm with a fast clock: {why}")
    guardian.start()
    shutil.rmtree(folder / options.what, ignore_errors=True)
    jobs = list(submissions(options.seed, options.jobs, options.between))
    play(folder / options.what, options.what, jobs, options.speed, options.wide_nodes)


if __name__ == "__main__":
    main()
