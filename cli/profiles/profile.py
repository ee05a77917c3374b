"""`pilotfish profile`: measure what programs need; list, show, import and export profiles.

Rule: `profile run` exits with the exit code of the command that it measured. A file is written whole or not at all.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...adapters.local.job_files import MTIME_S, inputs_of_run
from ...formats.documents.atomic_write import write_whole
from ...formats.documents.quantities import parse_rate
from ...formats.text import count, counted
from ...profiles.identity import words_checksum
from ...simulate.errors import ConfigError, did_you_mean
from ...simulate.model.job import DEFAULT_PROFILE, Job
from .. import options, streams
from ..inputs import Profiles, allowed_cpus, checked_name, classifier, input_sizes, profile_name
from ..lazy import CommandGroup
from ..options import argument, flag, option
from ..output.documents import print_json
from ..streams import note, show_document, warn
from ..usage_errors import bad, not_among, value_of
from .corun import corun, pairs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...profiles.store import ProfileStore
    from ...simulate.model.job import Profile

_ENDINGS = (".yaml", ".yml", ".json")

app = CommandGroup(
    """Measure what jobs need; list, show, import and export profiles.

    \b
    Examples:
      pilotfish profile run --name align -- ./align.sh reads.fastq
      pilotfish profile list
      pilotfish profile show align
    """
)


@app.command(context_settings={"allow_interspersed_args": False})
def run(
    command: options.Command,
    name: options.ProfileOption = None,
    store: options.Store = None,
    repeat: options.Repeat = 1,
    cpus: options.Cpus = None,
    bandwidth: Annotated[
        str | None, option("RATE", "Memory traffic of each thread, such as 5GB/s.", default="as measured")
    ] = None,
    node_type: options.NodeType = None,
    as_json: options.Json = False,
) -> int:
    """Run COMMAND, measure what it needs, and keep that as a profile.

    Measure on an idle machine if possible; on a busy one, the time that COMMAND waited for a core is subtracted. With
    --name, the profile is also used for jobs with this command and no profile. The exit code is the command's. With
    --json its standard output goes to standard error.

    \b
    Examples:
      pilotfish profile run --name align -- ./align.sh reads.fastq
      pilotfish profile run --name stream --repeat 5 --cpus 0 -- ./stream 64
    """
    from ...profiles.measure.command import CommandError, measure

    allowed = allowed_cpus(cpus)
    with value_of("--bandwidth"):
        rate = None if bandwidth is None else parse_rate(bandwidth)
    keep = Profiles(store).store
    profile_id = profile_name(command, name)
    runs, code = [], 0
    for _ in range(repeat):
        try:
            output = sys.stderr if as_json else None
            sizes, began = dict(input_sizes(command)), time.time()
            code, measured = measure(command, cpus=allowed, node_type=node_type, stdout=output, counters=True)
        except CommandError as error:
            note(str(error))
            return error.exit_code
        if rate is not None:
            sources = {part: source for part, source in measured.sources.items() if part != "bandwidth"}
            measured = replace(measured, bandwidth=rate, sources=sources)
        read = inputs_of_run(sizes, dict(input_sizes(command, since=began - MTIME_S)))
        command_profile, job = profile_name(command, None), Job("job", DEFAULT_PROFILE, command=tuple(command))
        runs.append(replace(measured, inputs=read, words=words_checksum(job), command=command_profile))
        profile = keep.record(profile_id, runs[-1])
        if command_profile != profile_id:
            keep.record(command_profile, runs[-1])
        if code:
            note(f"{command[0]} ended with exit code {code}: the run is recorded, but not used for the profile")
            break
    if as_json:
        document = {
            "name": profile_id,
            "runs": [record.to_dict() for record in runs],
            "profile": _entry(profile),
            "exit_code": code,
        }
        print_json("measurement", document)
    else:
        from ..output.profiles import show_run

        show_run(profile_id, runs[-1], keep.statistics(profile_id))
    return code


app.command(context_settings={"allow_interspersed_args": False})(corun)
app.command()(pairs)


@app.command("list")
def list_(cluster: options.ClusterFile = None, store: options.Store = None, as_json: options.Json = False) -> None:
    """List the profiles of the store and the library, with classes.

    A profile belongs to the user who owns the store. If other users name it, their runs are stored separately, under a
    name such as `align of uid 1005`. The classes hold for the nodes of --cluster, else for the type of node where each
    was measured; `profile show` explains a class.

    \b
    Examples:
      pilotfish profile list
      pilotfish profile list --cluster lab.yaml
      pilotfish profile list --json | jq '.profiles | keys'
    """
    keep = Profiles(store).store
    classify = classifier(cluster)
    classified = {name: (profile, classify(profile)) for name in keep.names() if (profile := keep.get(name))}
    if as_json:
        from ...profiles.classes import class_fields

        classes = {name: class_fields(classed) for name, (_, classed) in classified.items()}
        profiles = {name: _entry(profile) for name, (profile, _) in classified.items()}
        owners = {name: keep.owner_of(name) for name in classified}
        print_json("profiles", {"profiles": profiles, "classes": classes, "owners": owners})
        return
    from ..output.profiles import show_list

    show_list(classified, {name: owner for name in classified if (owner := keep.owner_of(name)) is not None})
    for loss in keep.dropped():
        number = count(loss.number, f"{loss.what[:-1]} has", f"{loss.what} have")
        note(f"{number} been dropped because of age, the last on {loss.latest}")


@app.command()
def show(
    name: Annotated[str, argument("NAME", "Name of the profile.", words=options.profile_names)],
    cluster: options.ClusterFile = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Show a profile: its numbers, how certain they are, and its class.

    The class is the resource that limits it, on the nodes of --cluster, else on the type of node where it was measured.

    \b
    Examples:
      pilotfish profile show align
      pilotfish profile show align --cluster lab.yaml
      pilotfish profile show align --json
    """
    keep = Profiles(store).store
    profile, scores = keep.get(name), keep.scores(name)
    if profile is None and not scores:
        raise ConfigError(str(keep.path), "", f"no profile is named {name!r}{did_you_mean(name, keep.names())}")
    classed = classifier(cluster)(profile) if profile else None
    if as_json:
        from ...profiles.classes import class_fields

        runs = [run.to_dict() for run in keep.history(name)]
        about: dict[str, Any] = dict(class_fields(classed)) if classed else {}
        about |= {"owner": keep.owner_of(name), "runs": runs, "scores": [one.to_dict() for one in scores]}
        print_json("profiles", {"profiles": {name: _entry(profile)} if profile else {}, **about})
        return
    from ..output.profiles import owner_name, show_profile, show_recorded_scores

    if profile and classed:
        show_profile(profile, keep.statistics(name), classed, owner_name(keep.owner_of(name)))
    else:
        streams.show(f"{name} has scores, but no measurement: `pilotfish profile run` measures it")
    for one in scores:
        show_recorded_scores(one)


@app.command("import")
def import_(
    file: Annotated[Path, argument("FILE", "Profiles (YAML or JSON), or see --source.")],
    source: Annotated[
        str | None,
        option(
            "TOOL", "Tool that wrote the file: sacct, likwid, perf or jobstats.", "--source",
            words=("sacct", "likwid", "perf", "jobstats"), default="pilotfish",
        ),
    ] = None,
    name: options.ProfileOption = None,
    node_type: options.NodeType = None,
    date: Annotated[str | None, option("YYYY-MM-DD", "Date of the measurement.", default="as in the file")] = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """Import profiles, or measurements of other tools, into the store.

    All profiles of a file are imported or none; they replace profiles of the same names. --name, --node-type and
    --date go with --source; profiles of sacct are named after the jobs.

    \b
    sacct     sacct -P -o JobID,JobName,State,Start,ElapsedRaw,TotalCPU,NCPUS,
              NNodes,MaxRSS,ConsumedEnergyRaw
    likwid    likwid-perfctr -O -g MEM ...
    perf      perf stat -x, -e task-clock,duration_time,instructions,cycles ...
    jobstats  jobstats --json JOBID, or JS1:... from Slurm's AdminComment

    \b
    Examples:
      pilotfish profile import profiles.yaml
      pilotfish profile import jobs.txt --source sacct --node-type xeon56
      pilotfish profile import mem.csv --source likwid --name align
    """
    keep = Profiles(store).store
    left_out: Mapping[str, int] = {}
    if source is None:
        for option_name, value in (("--name", name), ("--node-type", node_type), ("--date", date)):
            if value is not None:
                raise bad(option_name, "only with --source")
        from ...profiles.profiles_file import profile_doubts

        names = keep.import_file(file)
        warn(*profile_doubts(file))
    else:
        profiles, left_out = _imported(source, file, name, node_type, date)
        names = keep.put_all(profiles)
    if as_json:
        print_json("profile-import", {"profiles": list(names), "left_out": dict(left_out)})
        return
    streams.show(f"{count(len(names), 'profile')}: {', '.join(names)}")
    if left_out:
        note(f"left out: {counted(left_out)}")


@app.command()
def export(
    file: Annotated[Path | None, argument("FILE", "FILE.yaml, .json or .csv.", default="YAML on stdout")] = None,
    numbers: Annotated[bool, flag("--numbers", "Write one row for each number, as in every FILE.csv.")] = False,
    store: options.Store = None,
) -> None:
    """Write the store's own profiles, to import or to plot.

    For plotting, each number has a row: its profile and part, interval, source, date and number of runs.

    \b
    Examples:
      pilotfish profile export profiles.yaml
      pilotfish profile export numbers.csv
      pilotfish profile export --numbers numbers.json
    """
    if file is not None and file.suffix not in (*_ENDINGS, ".csv"):
        raise bad("FILE", f"{file.name!r} has no known ending (allowed: {', '.join((*_ENDINGS, '.csv'))})")
    kind = ".yaml" if file is None else file.suffix
    if numbers and kind not in (".csv", ".json"):
        raise bad("--numbers", "they are written to FILE.csv or FILE.json")
    keep = Profiles(store).store
    text = _numbers(keep, kind) if numbers or kind == ".csv" else keep.export_text(as_json=kind == ".json")
    if file is None:
        show_document(text)
        return
    try:
        write_whole(file, text)
    except OSError as error:
        raise ConfigError(str(file), "", f"cannot be written: {error.strerror}") from None


def _numbers(keep: ProfileStore, kind: str) -> str:
    import json
    from dataclasses import asdict

    from ...profiles.numbers import numbers, to_csv

    rows = list(numbers(keep))
    if kind == ".csv":
        return to_csv(rows)
    document = {"schema": "pilotfish/numbers/v1", "numbers": [asdict(row) for row in rows]}
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _imported(
    origin: str, file: Path, name: str | None, node_type: str | None, date: str | None
) -> tuple[Mapping[str, Profile], Mapping[str, int]]:
    """Return the profiles of another program's file, and what was left out; see `imports.read`.

    Raises ConfigError and typer.BadParameter.
    """
    from datetime import date as day

    from ...profiles import imports

    if origin not in imports.SOURCES:
        raise not_among("--source", origin, "a source", imports.SOURCES)
    if date is not None:
        try:
            day.fromisoformat(date)
        except ValueError:
            raise bad("--date", f"{date!r} (allowed: YYYY-MM-DD)") from None
    chosen = file.name.partition(".")[0] if name is None else checked_name(name)
    return imports.read(origin, file, chosen, node_type=node_type, date=date or "")


def _entry(profile: Profile | None) -> Any:
    from ...profiles.profiles_file import dump_entry

    return None if profile is None else dump_entry(profile)
