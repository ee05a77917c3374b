"""`pilotfish whatif`: replay a Slurm site under Slurm's own rules, as it is or changed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ...formats.documents.atomic_write import check_file, write_whole
from ...formats.text import count
from .. import options
from ..kernel_loading import load_kernels
from ..option_groups import grouped
from ..options import argument, option
from ..output.documents import print_json
from ..streams import note
from .change_options import ChangeOptions

if TYPE_CHECKING:
    from ...simulate.slurm.site import Site
    from ...simulate.slurm.site_outcome import SiteOutcome

#: Replays of each side of a change: their spread is what the phases of the clocks do.
REPEATS_OF_CHANGES = 5


@grouped
def whatif(
    site: Annotated[Path, argument("SITE", "Folder with the site's slurm.conf, sacct.psv and other files.")],
    change: ChangeOptions,
    sacct: Annotated[Path | None, option("FILE", "Accounting records to replay.", default="SITE/sacct.psv")] = None,
    zone: Annotated[str, option("ZONE", "Time zone of the dumps and of --drain, such as Europe/Berlin.")] = "UTC",
    starts: Annotated[
        Path | None, option("FILE", "Write the starts of the first replay, changed where it is changed (CSV).")
    ] = None,
    repeat: Annotated[
        int | None, option("N", "Number of replays.", min=1, max=1000, default="1, with changes 5 of each side")
    ] = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Replay a Slurm site under Slurm's own rules, and compare the starts with the recorded ones.

    With changes, compare the site before and after them. Two runs of a real Slurm differ, because the phases of its
    clocks differ. --seed draws them; --repeat makes several replays, with the seeds N, N + 1 and so on.

    \b
    Examples:
      pilotfish whatif site --repeat 10
      pilotfish whatif site --sacct march.psv.gz --starts starts.csv
      pilotfish whatif site --set SchedulerParameters=bf_window=4320
      pilotfish whatif site --set-qos high.Priority=1000 --scale-load 1.2
      pilotfish whatif site --drain n[01-08]@2026-03-02T18:00..2026-03-03T06:00
    """
    from ...formats.site.site_folder import read_site, time_zone

    if starts is not None:
        check_file(starts)
    clock, texts = time_zone(zone), change.described()
    recorded = read_site(site, sacct, clock)
    changed = change.changed(recorded, site, clock)
    load_kernels("slurm.site_requests")
    repeats = repeat or (REPEATS_OF_CHANGES if texts else 1)
    outcomes = _replays(changed, repeats, seed, starts)
    from ..output.text import Screen
    from ..output.waits import show_agreement, show_effect

    name, about = site.resolve().name, {"site": str(site), "seed": seed, "replays": repeats}
    if texts:
        from ...simulate.slurm.site_comparison import effect

        result = effect(recorded, _replays(recorded, repeats, seed, None), outcomes, seed)
        if as_json:
            print_json("whatif", {**about, "changes": texts, **asdict(result), "unknown": changed.unknown})
        else:
            show_effect(Screen(), name, changed, texts, result, repeats)
        return
    from ...simulate.slurm.site_comparison import agreement
    from ...simulate.slurm.site_outcome import recorded_outcome

    agreed = agreement(recorded, recorded_outcome(recorded), outcomes)
    if as_json:
        print_json("whatif", {**about, **asdict(agreed), "unknown": recorded.unknown})
    else:
        show_agreement(Screen(), name, recorded, agreed, repeats)


def _replays(site: Site, repeats: int, seed: int, starts: Path | None) -> list[SiteOutcome]:
    """Replay a site with several seeds; write the starts of the first replay into a file, if one is given."""
    from ...simulate.slurm.site_outcome import replayed_outcome
    from ...simulate.slurm.twin import replay_site

    outcomes = []
    for number in range(repeats):
        replay = replay_site(site, seed + number)
        outcomes.append(replayed_outcome(site, replay))
        if starts is not None and not number:
            from ...formats.site.starts_file import dump_starts

            write_whole(starts, dump_starts(site, replay))
            note(f"{starts}: {count(len(replay.starts), 'start')}, seed {seed}")
    return outcomes
