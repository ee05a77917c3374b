"""`pilotfish whatif`: replay a Slurm site under Slurm's own rules, as it is or changed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ...formats.documents.atomic_write import check_file, write_whole
from ...formats.text import count
from ...machine_share import usable_cpus
from .. import options
from ..charts import picture_files
from ..charts.picture_files import PlotFile
from ..kernel_loading import load_kernels
from ..option_groups import grouped
from ..options import argument, option
from ..output.documents import print_json
from ..streams import note, warn
from ..usage_errors import bad
from ..worker_options import worker_pool
from .change_options import ChangeOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...simulate.slurm.site_outcome import SiteOutcome
    from ..output.effects import ScenarioEffect
    from .replays import Replays

#: Replays of each side of a change: their spread is what the phases of the clocks do.
REPEATS_OF_CHANGES = 5


@grouped
def whatif(
    change: ChangeOptions,
    site: Annotated[
        Path | None, argument("SITE", "Folder with the site's slurm.conf, sacct.psv and other files.")
    ] = None,
    adapter: Annotated[str | None, options.ThisSite] = None,
    config: options.ConfigFile = None,
    scenario: Annotated[
        list[str] | None,
        option("'NAME: CHANGES'", "A named group of changes, such as 'wide: --set PriorityWeightAge=2000'."),
    ] = None,
    scenarios: Annotated[Path | None, option("FILE", "More named groups of changes (YAML).")] = None,
    sacct: Annotated[Path | None, option("FILE", "Accounting records to replay.", default="SITE/sacct.psv")] = None,
    zone: Annotated[str, option("ZONE", "Time zone of the dumps and of --drain, such as Europe/Berlin.")] = "UTC",
    starts: Annotated[
        Path | None, option("FILE", "Write the starts of the first replay, changed where it is changed (CSV).")
    ] = None,
    repeat: Annotated[
        int | None, option("N", "Number of replays.", min=1, max=1000, default="1, with changes or --adapter 5")
    ] = None,
    seed: options.Seed = 0,
    resume: options.Resume = None,
    workers: options.Workers = None,
    dask: options.Dask = None,
    idle_power: Annotated[
        float, option("WATTS", "Power of a node without a job, where energy is recorded.", min=0.0, max=1e6)
    ] = 0.0,
    plot: PlotFile = None,
    show_all: options.All = False,
    as_json: options.Json = False,
) -> int:
    """Replay a Slurm site under Slurm's own rules, and compare the starts with the recorded ones.

    With --adapter, ask the running Slurm, and show when the jobs that wait now start, up to 24 h ahead. With changes,
    compare the site before and after them. Two runs of a real Slurm differ, because the phases of its
    clocks differ. --seed draws them; --repeat makes several replays, with the seeds N, N + 1 and so on. Ctrl-C prints
    what is known by then.

    \b
    Examples:
      pilotfish whatif site --repeat 10
      pilotfish whatif site --sacct march.psv.gz --starts starts.csv
      pilotfish whatif site --set SchedulerParameters=bf_window=4320
      pilotfish whatif site --set-qos high.Priority=1000 --scale-load 1.2
      pilotfish whatif site --drain n[01-08]@2026-03-02T18:00..2026-03-03T06:00
      pilotfish whatif site --policy easy:order=sjf
      pilotfish whatif site --scenarios ideas.yaml --resume ideas.jsonl
      pilotfish whatif --adapter slurm --drain n[01-08]@18:00..
    """
    from .replays import Replays
    from .scenarios import UNCHANGED, Scenario, scenarios_of

    if starts is not None:
        check_file(starts)
    choices = scenarios_of(change, scenario or (), scenarios)
    if adapter is not None or config is not None:
        refused = {
            "SITE": site, "--sacct": sacct, "--starts": starts, "--resume": resume,
            "--dask": dask, "--scale-load": next(filter(None, (one.change.scale_load for one in choices)), None),
            "--policy": next(filter(None, (one.change.policy for one in choices)), None),
            "--idle-power": idle_power or None, "--plot": plot,
        }  # fmt: skip
        for name, value in refused.items():
            if value is not None:
                raise bad(name, "not with --adapter or --config, which name the queue of a running Slurm")
        from ...formats.site.site_folder import time_zone
        from ..output.present_waits import present_document, show_present
        from ..output.text import Screen
        from .present_queue import present_queue, present_texts

        seeds = range(seed, seed + (repeat or REPEATS_OF_CHANGES))
        queue = present_queue(present_texts(adapter, config), choices, zone, seeds, workers or len(usable_cpus()))
        if as_json:
            print_json("whatif", present_document(queue))
        else:
            show_present(Screen(), queue, time_zone(zone), show_all=show_all)
        return 0
    if site is None:
        raise bad("SITE", "a folder, or --adapter slurm for the queue of a running Slurm")
    if plot is not None and not choices:
        raise bad("--plot", "draws the effect of changes, and there is no change")
    picture_files.check(plot)
    from ...formats.site.starts_file import dump_starts
    from ..sweeps.workers import PoolLostError
    from .replay_tasks import source_of

    load_kernels("bars.columns")
    source, recorded = source_of(site, sacct, zone)
    seeds = range(seed, seed + (repeat or (REPEATS_OF_CHANGES if choices else 1)))
    replays = Replays(source, recorded, (Scenario(UNCHANGED, ChangeOptions()), *choices), seeds)
    interruption: BaseException | None = None
    with replays.journal(resume) as journal:
        if starts is not None or replays.todo():
            load_kernels("slurm.site_requests")
        if starts is not None:
            replay = replays.first(journal)
            write_whole(starts, dump_starts(*replay))
            note(f"{starts}: {count(len(replay[1].starts), 'start')}, seed {seed}")
        if todo := replays.todo():
            try:
                replays.conduct(worker_pool(workers, dask, len(todo)), todo, journal)
            except (KeyboardInterrupt, PoolLostError) as error:
                interruption = error
    for reason in dict.fromkeys(replays.failures.values()):
        warn(reason)
    if interruption is not None and resume is not None:
        note(f"the same command continues with {resume}")
    effects = _report(site, zone, replays, idle_power, show_all, as_json)
    if plot is not None and effects:
        _draw(site, replays, effects, idle_power, plot)
    if interruption is not None:
        raise interruption
    return int(bool(replays.failures))


def _report(
    folder: Path, zone: str, replays: Replays, idle_w: float, show_all: bool, as_json: bool
) -> list[ScenarioEffect]:
    """Print the comparison of the replays that ended; return the scenarios that have some."""
    from ...formats.site.printed_tables import read_printed_numbers
    from ...formats.site.site_folder import time_zone
    from ...simulate.slurm.printed_numbers import printed_checks
    from ...simulate.slurm.site_changes import first_submission
    from ...simulate.slurm.site_comparison import agreement
    from ...simulate.slurm.site_effect import effect
    from ...simulate.slurm.site_outcome import recorded_outcome
    from ..output.effects import ScenarioEffect, show_effects
    from ..output.text import Screen
    from ..output.waits import show_agreement

    site, (unchanged, *changed) = replays.site, replays.scenarios
    name, about = (
        folder.resolve().name,
        {"site": str(folder), "seed": replays.seeds[0], "first_hour": first_submission(site)},
    )
    if not changed:
        (outcomes,) = replays.outcomes(unchanged)
        if not outcomes:
            return []
        recorded = recorded_outcome(site)
        agreed = agreement(site, recorded, outcomes)
        printed = read_printed_numbers(folder, time_zone(zone))
        checks = None if printed is None else printed_checks(site, printed)
        if as_json:
            numbers = None if checks is None else asdict(checks)
            document = {**about, "replays": len(outcomes), **asdict(agreed), "printed": numbers}
            document["hours"] = {"recorded": _hours([recorded], idle_w), "replayed": _hours(outcomes, idle_w)}
            document["unknown"] = site.unknown
            print_json("whatif", document)
        else:
            show_agreement(Screen(), name, site, agreed, len(outcomes), checks)
        return []
    effects, hours = [], list[dict[str, object]]()
    for one, unknown in zip(changed, replays.unknown[1:], strict=True):
        before, after = replays.outcomes(unchanged, one)
        if before:
            result = effect(site, before, after, replays.seeds[0], idle_w, replays.changed(one))
            effects.append(ScenarioEffect(one.name, one.change.described(), unknown, result, len(before)))
            sides = {"before": before, "after": after} if as_json else {}
            hours.append({name: _hours(side, idle_w) for name, side in sides.items()})
    if as_json:
        documents = [asdict(one) | {"hours": parts} for one, parts in zip(effects, hours, strict=True)]
        scenarios = [document.pop("effect") | document for document in documents]
        print_json("whatif", {**about, "scenarios": scenarios})
    elif effects:
        show_effects(Screen(), name, site, effects, everything=show_all)
    return effects


def _hours(outcomes: Sequence[SiteOutcome], idle_w: float) -> dict[str, list[float] | None]:
    """Return the means of each hour, for a document."""
    from ...simulate.slurm.site_outcome import hourly_means

    means = asdict(hourly_means(outcomes, idle_w))
    return {name: None if column is None else column.tolist() for name, column in means.items()}


def _draw(
    folder: Path, replays: Replays, effects: Sequence[ScenarioEffect], idle_w: float, target: Path
) -> None:  # fmt: skip
    """Draw the scenarios into a file."""
    from ...simulate.slurm.site_changes import first_submission
    from ..charts.effect_figure import ShownEffect, effect_figure

    unchanged, *changed = replays.scenarios
    parts = {one.name: one.effect for one in effects}
    shown = [
        ShownEffect(one.name, parts[one.name], *replays.outcomes(unchanged, one))
        for one in changed
        if one.name in parts
    ]
    begin = first_submission(replays.site)
    figure = effect_figure(folder.resolve().name, begin, shown, idle_w, unchanged.name)
    picture_files.save(figure, target)
