"""`pilotfish whatif`: replay a Slurm site under Slurm's own rules, as it is or changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ...formats.documents.atomic_write import check_file, write_whole
from .. import options
from ..kernel_loading import load_kernels
from ..options import argument, option
from ..output.documents import print_json
from ..streams import note


def whatif(
    site: Annotated[Path, argument("SITE", "Folder with the site's slurm.conf, sacct.psv and other files.")],
    sacct: Annotated[Path | None, option("FILE", "Accounting records to replay.", default="SITE/sacct.psv")] = None,
    starts: Annotated[Path | None, option("FILE", "Write the starts of the first replay (CSV).")] = None,
    repeat: options.Repeat = 1,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Replay a Slurm site under Slurm's own rules, and compare the starts with the recorded ones.

    Two runs of a real Slurm differ, because the phases of its clocks differ. --seed draws them; --repeat makes several
    replays, with the seeds N, N + 1 and so on, and reports their mean and their spread.

    \b
    Examples:
      pilotfish whatif site
      pilotfish whatif site --repeat 10 --seed 1
      pilotfish whatif site --sacct march.psv.gz --starts starts.csv
    """
    from ...formats.site.site_folder import read_site
    from ...formats.site.starts_file import dump_starts
    from ...simulate.slurm.site_comparison import agreement
    from ...simulate.slurm.site_outcome import recorded_outcome, replayed_outcome
    from ...simulate.slurm.twin import replay_site

    if starts is not None:
        check_file(starts)
    read = read_site(site, sacct)
    load_kernels("slurm.entry")
    outcomes = []
    for number in range(repeat):
        replay = replay_site(read, seed + number)
        outcomes.append(replayed_outcome(read, replay))
        if starts is not None and not number:
            write_whole(starts, dump_starts(read, replay))
            note(f"{starts}: the starts of the replay with seed {seed}")
    result = agreement(read, recorded_outcome(read), outcomes)
    if as_json:
        from dataclasses import asdict

        print_json("whatif", {"site": str(site), "seed": seed, **asdict(result), "unknown": read.unknown})
        return
    from ..output.text import Screen
    from ..output.waits import show_agreement

    show_agreement(Screen(), site.resolve().name, read, result, repeat)
