"""`pilotfish score`: what a dry run would have gained, as a card."""

from __future__ import annotations

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ...formats.documents.atomic_write import write_whole
from ...machine_share import usable_cpus
from ...simulate.errors import ConfigError, PilotfishError
from .. import options
from ..charts import picture_files
from ..kernel_loading import load_kernels
from ..moment_option import moment_s
from ..options import argument, flag, option
from ..output.documents import print_json
from ..output.sweep import SweepProgress
from ..streams import note
from ..usage_errors import bad, bad_value
from .card import Card
from .judged_policy import USUAL, JudgedPolicy, judged_policy

if TYPE_CHECKING:
    from ...daemon.config import DaemonConfig
    from ...simulate.arrays import Array
    from ...simulate.slurm.handed_order import Handling
    from ...simulate.slurm.ordered_jobs import OrderedJobs
    from ...simulate.slurm.site import Site
    from ...simulate.slurm.site_outcome import SiteOutcome
    from ...simulate.slurm.start_delay import StartDelay
    from .evidence import Evidence

#: Replays of each side; how long job_submit.lua lets a job wait for pilotfish, seconds.
REPEATS, HOLD_S = 5, 600.0
#: How far back accounting is read if the journal says nothing, and at most unless a time is named: a day is a request.
_PAST_S, _LONGEST_S = 7 * 86_400.0, 31 * 86_400.0


def score(
    site: Annotated[
        Path | None,
        argument("SITE", "Folder of `pilotfish site record` or `record`.", default="the site of the service"),
    ] = None,
    config: options.ConfigFile = None,
    policy: Annotated[
        str | None,
        option("POLICY", "Policy to judge: easy or conservative with an order.", "--policy", "-p",
               default=f"that of the service, else {USUAL}"),
    ] = None,
    since: Annotated[
        str | None, option("TIME", "Begin of the period: a date (UTC), or a time ago.", default="all of it")
    ] = None,
    partition: Annotated[
        list[str] | None, option("NAME", "Hand over the jobs of this partition; repeat it for more.", default="all")
    ] = None,
    hold: Annotated[
        float, option("SECONDS", "How long a job waits for pilotfish at most; then Slurm orders it.", min=0.0)
    ] = HOLD_S,
    wide_nodes: Annotated[
        int | None, option("N", "Jobs of so many nodes or more are held for one backfill pass only.", min=1,
                           default="that of the service, else more than a quarter of the partition")
    ] = None,
    start_delay: Annotated[
        float | None,
        option("SECONDS", "How long pilotfish takes to place a job that could start.", min=0.0, max=3600.0,
               default="as the service measured it, else 1 to 3"),
    ] = None,
    runtimes: options.RunTimes = "walltime",
    sacct: Annotated[Path | None, option("FILE", "Accounting records to replay.", default="SITE/sacct.psv")] = None,
    zone: Annotated[str, option("ZONE", "Time zone of the dumps and of --drain, such as Europe/Berlin.")] = "UTC",
    repeat: Annotated[int, option("N", "Number of replays.", min=1, max=1000)] = REPEATS,
    seed: options.Seed = 0,
    workers: options.Workers = None,
    idle_power: Annotated[
        float, option("WATTS", "Power of a node without a job, where energy is recorded.", min=0.0, max=1e6)
    ] = 0.0,
    canary: Annotated[
        bool, flag("--canary", "Compare the jobs that were handed over with their control group, as it really was.")
    ] = False,
    html: Annotated[Path | None, option("FILE", "Write the card as a page for a browser.", "--html")] = None,
    show_all: options.All = False,
    as_json: options.Json = False,
) -> int:  # fmt: skip
    """Say what pilotfish would have gained, from what Slurm did: the card of a dry run.

    Three sides have the same jobs, submissions and run times: the record; its twin, a replay under Slurm's own rules;
    and the twin in which jobs that are handed over stand in the order of the policy. The gain is the third against the
    second; the second against the first is the error of the simulation. Nothing is changed anywhere. Without SITE, the
    accounting of the time in which the service ran is read, and the card has the forecasts of its journal.

    \b
    Examples:
      pilotfish score site
      pilotfish score site --policy easy:order=sjf --partition batch
      pilotfish score --config /etc/pilotfish/pilotfish.yaml --html card.html
      pilotfish score --config /etc/pilotfish/pilotfish.yaml --canary
    """
    if runtimes not in ("walltime", "predicted"):
        raise bad("--runtimes", f"{runtimes!r} (allowed: walltime, predicted)")
    if html is not None and html.suffix.lower() != ".html":
        raise bad("--html", f"{html.name!r} (allowed: a name that ends with .html)")
    picture_files.check(html, "--html")
    from ...formats.site.site_folder import time_zone
    from ...simulate.slurm.handed_order import Handling

    time_zone(zone)
    if canary:
        return _score_groups(config, site, since, html, as_json=as_json)
    service = _service(config, is_needed=site is None)
    judged = judged_policy(policy or (service.policy if service else USUAL))
    begin = None if since is None else moment_s("--since", since, time.time())
    from .evidence import evidence_of

    evidence = evidence_of(service, begin) if service else None
    requests = 0
    with ExitStack() as stack:
        folder, name = site, "" if site is None else site.resolve().name
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pilotfish-"))) / "site"
            name = "this site"
            if service is not None and service.adapter.name != "slurm":
                folder = service.record_folder
            else:
                first = evidence.begin if evidence else None
                requests = _record(service, folder, begin or begin_of_accounting(first, time.time()))
        from ...formats.record.site_of_record import is_record, site_of_record

        if is_record(folder):
            recorded_site = site_of_record(folder)
        else:
            from ..whatif.replay_tasks import source_of

            load_kernels("bars.columns")
            _, recorded_site = source_of(folder, sacct, zone)
    if not len(recorded_site.jobs):
        raise ConfigError(str(site or name), "", "no job was submitted in this period", "a period with jobs")
    if wide_nodes is None and service is not None and service.adapter.name == "slurm":
        wide_nodes = service.adapter.options.get("wide_nodes")
    from ...simulate.slurm.start_delay import StartDelay
    from .measured_delay import measured_delay

    delay = measured_delay(service.delays if service else None)
    if start_delay is not None:
        delay = StartDelay((start_delay,), 0, "as given by --start-delay")
    handling = Handling(hold, wide_nodes, delay)
    card = _card(name, recorded_site, judged, begin, partition or [], handling, runtimes, range(seed, seed + repeat),
                 workers, idle_power, evidence, requests)  # fmt: skip
    from ..output.text import Screen
    from .card_text import card_document, show_card

    if html is not None:
        from .card_page import card_page

        write_whole(html, card_page(card))
        note(f"{html}: the card as a page")
    if as_json:
        print_json("score", card_document(card))
    else:
        show_card(Screen(), card, everything=show_all)
    return 0


def _score_groups(
    config: Path | None, site: Path | None, since: str | None, html: Path | None, *, as_json: bool
) -> int:
    """Print the card of a canary."""
    if site is not None:
        raise bad("--canary", "it is of a service (allowed: without SITE)")
    from ...daemon.config import load_config
    from ..inputs import config_file
    from ..output.text import Screen
    from .group_card import comparison_document, read_comparison, show_comparison

    now = time.time()
    begin = None if since is None else moment_s("--since", since, now)
    comparison = read_comparison(load_config(config_file(config)), begin, now)
    if html is not None:
        from .group_page import comparison_page

        write_whole(html, comparison_page(comparison))
        note(f"{html}: the card of the canary as a page")
    if as_json:
        print_json("canary", comparison_document(comparison))
    else:
        show_comparison(Screen(), comparison)
    return 0


def _service(config: Path | None, *, is_needed: bool) -> DaemonConfig | None:
    """Return the configuration of the service; None if none is named and none is needed."""
    if config is None and not is_needed:
        return None
    from ...daemon.config import load_config
    from ..inputs import config_file

    path = config_file(config)
    service = load_config(path)
    if is_needed and service.adapter.name != "slurm":
        from ...formats.record.site_of_record import is_record

        if not is_record(service.record_folder):
            problem = f"found {service.adapter.name!r}, whose accounting cannot be read, and the service has no record"
            raise ConfigError(str(path), "adapter.name", problem, "slurm, `record: {enabled: true}`, or a SITE folder")
    return service


def begin_of_accounting(first: float | None, now: float) -> float:
    """Return from when on accounting is read if no time is named, epoch seconds: a bounded number of days.

    Args:
        first: the begin of the journal, epoch seconds; None: it says nothing.
        now: epoch seconds.
    """
    return now - _PAST_S if first is None else max(first, now - _LONGEST_S)


def _record(service: DaemonConfig | None, folder: Path, since: float) -> int:
    """Record the Slurm of the service from a time on; return the requests that this took.

    Raises:
        ConfigError, AdapterError, OSError: it cannot be recorded.
    """
    from ...adapters.slurm.site_recorder import TIMEOUT_S, RecorderOptions, record_site
    from ...adapters.slurm.transport.runner import CommandRunner
    from ...formats.site.recording import SiteRecording
    from ..usage_errors import adapter_errors

    now = time.time()
    recording = SiteRecording(folder, {"zone": "UTC", "anonymous": False})
    recording.begin()
    with adapter_errors(None):
        runner = CommandRunner(TIMEOUT_S)
        record_site(recording, RecorderOptions(since, now), runner)
    if "sacct.psv" not in recording.sizes:
        raise PilotfishError(f"accounting cannot be read: {recording.missing.get('sacct.psv', 'sacct has no records')}")
    return runner.commands


def _card(
    name: str, site: Site, policy: JudgedPolicy, since: float | None, partitions: list[str], handling: Handling,
    run_times: str, seeds: range, workers: int | None, idle_w: float, evidence: Evidence | None,
    requests: int,
) -> Card:  # fmt: skip
    import numpy as np

    from ...simulate.slurm.handed_order import left_to_slurm, ordered_jobs
    from ...simulate.slurm.site_outcome import recorded_outcome
    from ...simulate.slurm.site_score import score as scored

    try:
        reasons = left_to_slurm(site, partitions)
    except ConfigError as error:
        raise bad_value("--partition", error) from None
    expected = _expected(site) if run_times == "predicted" else None
    handed = ordered_jobs(site, policy.order, reasons, handling, expected)
    load_kernels("slurm.site_requests")
    recorded = recorded_outcome(site)
    twin, pilotfish = _replays(site, seeds, handed, handling.start_delay, workers)
    numbers = scored(site, recorded, twin, pilotfish, reasons, handed, since=-np.inf if since is None else since,
                     seed=seeds[0], idle_w=idle_w)  # fmt: skip
    share = None if expected is None else float(np.mean(~np.isnan(expected)))
    return Card(name, site, policy, numbers, partitions, handling, run_times, share, evidence, requests, recorded, twin,
                pilotfish)  # fmt: skip


def _expected(site: Site) -> Array:
    from ...profiles.prediction.site_run_times import expected_at_submission

    return expected_at_submission(site.jobs)


def _replays(
    site: Site, seeds: range, handed: OrderedJobs, delay: StartDelay, workers: int | None
) -> tuple[list[SiteOutcome], list[SiteOutcome]]:
    """Replay the twin with each seed, and with the same seeds the twin with jobs handed over.

    Kernels run outside Python's lock, so that threads are enough.
    """
    from ...simulate.slurm.site_outcome import replayed_outcome
    from ...simulate.slurm.twin import replay_site

    late = [replace(handed, seen_s=delay.drawn(len(site.jobs), seed)) for seed in seeds]
    tasks = [(seed, side) for seed, jobs in zip(seeds, late, strict=True) for side in (None, jobs)]
    threads = min(workers or len(usable_cpus()), len(tasks))

    def replayed(task: tuple[int, OrderedJobs | None]) -> SiteOutcome:
        return replayed_outcome(site, replay_site(site, task[0], handed=task[1]))

    outcomes: list[SiteOutcome] = []
    with SweepProgress(len(tasks)) as progress, ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(threads)) if threads > 1 else None
        for outcome in pool.map(replayed, tasks) if pool else map(replayed, tasks):
            outcomes.append(outcome)
            progress.ended([{"status": "done"}])
    return outcomes[::2], outcomes[1::2]
