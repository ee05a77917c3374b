"""`pilotfish profile`: measure what programs need, and look at what is known.

Rule: `profile run` ends with the exit code of the command that it measured.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...simulate.errors import ConfigError
from . import inputs
from .corun import corun, pairs
from .export import export

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...profiles.classes import Classed
    from ...profiles.measurement import Measurement
    from ...profiles.store import ProfileStore
    from ...simulate.job import Profile

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Measure what jobs need; list, show, import and export profiles.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]
ForNodes = Annotated[
    Path | None, typer.Option("--cluster", metavar="FILE", help="Class profiles for the nodes of this cluster file.")
]
ProfileName = Annotated[str, typer.Argument(metavar="NAME", help="The profile's name.")]


@app.command(context_settings={"allow_interspersed_args": False})
def run(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="The command to measure.")],
    name: Annotated[
        str | None, typer.Option(help="Its profile's name (default: one made from the command).")
    ] = None,
    store: inputs.Store = None,
    repeat: Annotated[
        int, typer.Option(min=1, metavar="K", help="Run it K times; each run sharpens the profile.")
    ] = 1,
    cpus: Annotated[str | None, typer.Option(metavar="LIST", help="CPUs it may use, such as 0,2-3.")] = None,
    bandwidth: Annotated[
        str | None,
        typer.Option(
            metavar="RATE", help="Memory traffic of each thread, such as 5GB/s (default: as counted, if at all)."
        ),
    ] = None,
    node_type: Annotated[
        str | None, typer.Option(metavar="TYPE", help="This machine's node type in your cluster file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run COMMAND, measure what it needs, and keep that as a profile.

    It is best measured alone; in company, the time that it waited for a core is taken out. The exit code is
    the command's. With --json its standard output goes to standard error.

    \b
    Examples:
      pilotfish profile run --name align -- ./align.sh reads.fastq
      pilotfish profile run --name stream --repeat 5 --cpus 0 -- ./stream 64
    """
    from ...profiles.measure import CommandError, measure

    allowed, rate = allowed_cpus(cpus), _rate(bandwidth)
    keep = _store(store)
    chosen = chosen_name(command, name)
    runs, code = [], 0
    for _ in range(repeat):
        try:
            code, measured = measure(
                command,
                cpus=allowed,
                node_type=node_type,
                stdout=sys.stderr if as_json else None,
                counters=True,
            )
        except CommandError as error:
            inputs.note(str(error))
            raise typer.Exit(error.exit_code) from None
        runs.append(measured if rate is None else _given(measured, rate))
        profile = keep.record(chosen, runs[-1])
        if code:
            inputs.note(
                f"{command[0]} ended with exit code {code}: the run is kept, the profile does not rest on it"
            )
            break
    if as_json:
        print_json(
            "measurement",
            name=chosen,
            runs=[m.to_dict() for m in runs],
            profile=_entry(profile),
            exit_code=code,
        )
    else:
        from ..render.profiles import show_run

        show_run(chosen, runs[-1], keep.statistics(chosen))
    raise typer.Exit(code)


app.command(context_settings={"allow_interspersed_args": False})(corun)
app.command()(pairs)


@app.command("list")
def list_(cluster: ForNodes = None, store: inputs.Store = None, as_json: AsJson = False) -> None:
    """List the profiles that there are, with their classes.

    They are the store's and those of the shipped library; `profile show` says what a class rests on.
    """
    keep = _store(store)
    own = set(keep.own_names())
    known = {name: profile for name in keep.names() if (profile := keep.get(name))}
    classed = _classes(known.values(), cluster)
    if as_json:
        from ...profiles.classes import told

        classes = {name: told(one) for name, one in zip(known, classed, strict=True)}
        print_json("profiles", profiles={name: _entry(profile) for name, profile in known.items()}, classes=classes)
        return
    from ..render.profiles import show_list
    from ..render.text import count

    show_list(dict(zip(known, zip(known.values(), classed, strict=True), strict=True)), own)
    for gone in keep.dropped():
        inputs.note(f"{count(gone.number, gone.what[:-1])} were dropped for their age so far, last on {gone.latest}")


@app.command()
def show(
    name: ProfileName,
    cluster: ForNodes = None,
    store: inputs.Store = None,
    as_json: AsJson = False,
) -> None:
    """Show what is known of a profile, and how well.

    Its class is what it would spend its time on, for the type of node on which it was measured, where that is in
    --cluster or shipped with pilotfish.
    """
    keep = _store(store)
    profile, scores = keep.get(name), keep.scores(name)
    if profile is None and not scores:
        from ...simulate.formats.shape import nearest

        raise ConfigError(str(keep.path), "", f"no profile is named {name!r}{nearest(name, keep.names())}")
    classed = _classes([profile], cluster)[0] if profile else None
    if as_json:
        from ...profiles.classes import told

        runs = [run.to_dict() for run in keep.history(name)]
        about = {**(told(classed) if classed else {}), "runs": runs, "scores": [one.to_dict() for one in scores]}
        print_json("profiles", profiles={name: _entry(profile)} if profile else {}, **about)
        return
    from ..render.corun import show_kept
    from ..render.profiles import lines, show_profile

    if profile and classed:
        show_profile(profile, keep.statistics(name), classed)
    else:
        lines(f"{name} is scored, and was not measured: pilotfish profile run measures")
    for one in scores:
        show_kept(one)


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Profiles (YAML or JSON), or see --from.")],
    origin: Annotated[
        str | None, typer.Option("--from", metavar="SOURCE", help="What wrote it: sacct, likwid, perf or jobstats.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="With --from: the profile's name (default: the file's); sacct's have the jobs'.")
    ] = None,
    node_type: Annotated[
        str | None, typer.Option(metavar="TYPE", help="With --from: the node's type in your cluster file.")
    ] = None,
    date: Annotated[
        str | None, typer.Option(metavar="YYYY-MM-DD", help="With --from: when, if the file does not tell.")
    ] = None,
    store: inputs.Store = None,
) -> None:
    """Take profiles into the store, or what other tools measured.

    All of a file or none, in place of earlier ones of the same names.

    \b
    sacct     sacct -P -o JobID,JobName,State,Start,ElapsedRaw,TotalCPU,NCPUS,
              NNodes,MaxRSS,ConsumedEnergyRaw
    likwid    likwid-perfctr -O -g MEM ...
    perf      perf stat -x, -e task-clock,duration_time,instructions,cycles ...
    jobstats  jobstats --json JOBID, or JS1:... from Slurm's AdminComment

    \b
    Examples:
      pilotfish profile import profiles.yaml
      pilotfish profile import jobs.txt --from sacct --node-type xeon56
      pilotfish profile import mem.csv --from likwid --name align
    """
    keep = _store(store)
    if origin is None:
        for option, value in (("--name", name), ("--node-type", node_type), ("--date", date)):
            if value is not None:
                raise inputs.bad(option, "it goes with --from")
        names = keep.import_file(file)
    else:
        names = keep.put_all(_imported(origin, file, name, node_type, date))
    from ..render.profiles import lines
    from ..render.text import count

    lines(f"{count(len(names), 'profile')}: {', '.join(names)}")


app.command()(export)


def _given(measured: Measurement, rate: float) -> Measurement:
    """What the user says of the bandwidth, bytes/s, comes before what was counted."""
    sources = {name: source for name, source in measured.sources.items() if name != "bandwidth"}
    return replace(measured, bandwidth=rate, sources=sources)


def _imported(
    origin: str, file: Path, name: str | None, node_type: str | None, date: str | None
) -> dict[str, Profile]:
    """Return the profiles of another program's file. Raises ConfigError and typer.BadParameter."""
    from datetime import date as day

    from ...profiles import imports

    if origin not in imports.SOURCES:
        raise inputs.not_among("--from", origin, "a source", imports.SOURCES)
    if date is not None:
        try:
            day.fromisoformat(date)
        except ValueError:
            raise inputs.bad("--date", f"{date!r} (allowed: YYYY-MM-DD)") from None
    chosen = file.name.partition(".")[0] if name is None else chosen_name([], name)
    return imports.read(origin, file, chosen, node_type=node_type, date=date or "")


def _classes(profiles: Iterable[Profile], cluster: Path | None) -> list[Classed]:
    from ...profiles.classes import classify_on, classify_there

    if cluster is None:
        return [classify_there(profile) for profile in profiles]
    site = inputs.read_cluster(cluster)
    return [classify_on(profile, site) for profile in profiles]


def _store(path: Path | None) -> ProfileStore:
    from ...profiles.store import ProfileStore
    from ..paths import profile_store_path

    return ProfileStore(path or profile_store_path())


def allowed_cpus(written: str | None) -> tuple[int, ...] | None:
    """Return the CPUs of a list such as 0,2-3. Raises typer.BadParameter."""
    if written is None:
        return None
    import os

    from ...simulate.formats.hostlist import parse_cpus

    try:
        cpus = parse_cpus(written)
    except ConfigError as error:
        raise inputs.bad_value("--cpus", error) from None
    ours = os.sched_getaffinity(0)
    if not set(cpus) <= ours:
        raise typer.BadParameter(
            f"{written} (allowed: {','.join(map(str, sorted(ours)))})", param_hint="'--cpus'"
        )
    return cpus


def _rate(written: str | None) -> float | None:
    """Return a rate in bytes/s. Raises typer.BadParameter."""
    from ...simulate.formats.units import parse_rate

    try:
        return None if written is None else parse_rate(written)
    except ConfigError as error:
        raise inputs.bad_value("--bandwidth", error) from None


def chosen_name(command: list[str], name: str | None, option: str = "--name") -> str:
    """Return the name of a command's profile: the one given, or the one under which a job with it finds its profile.

    Args:
        option: how it was given.

    Raises typer.BadParameter.
    """
    if name is None:
        from ...profiles.signature import signature
        from ...simulate.job import DEFAULT_PROFILE, Job

        made = signature(Job("job", DEFAULT_PROFILE, command=tuple(command)))
        assert made is not None
        return made
    from ...profiles.store import check_name

    try:
        check_name(name)
    except ConfigError as error:
        raise inputs.bad_value(option, error) from None
    return name


def print_json(kind: str, **content: Any) -> None:
    """Print one JSON document of ours."""
    import json

    print(json.dumps({"schema": f"pilotfish/{kind}/v1", **content}, indent=2, allow_nan=False))


def _entry(profile: Profile | None) -> Any:
    from ...profiles.schema import dump_entry

    return None if profile is None else dump_entry(profile)
