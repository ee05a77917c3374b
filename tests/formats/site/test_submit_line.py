"""Options of SubmitLine: short, glued, long, abbreviated, last wins, and where the script begins."""

from __future__ import annotations

import pytest

from pilotfish.formats.site.submit_line import submit_options


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("sbatch -N2 -n 4 -c2 x.sh", {"nodes": "2", "ntasks": "4", "cpus-per-task": "2"}),
        ("sbatch --nodes=2-4 --time 1:00 x.sh", {"nodes": "2-4", "time": "1:00"}),
        ("sbatch -N2 --nodes=3 x.sh", {"nodes": "3"}),
        ("sbatch -HsN3 x.sh", {"hold": "", "oversubscribe": "", "nodes": "3"}),
        ("sbatch --exclusive -n1 x.sh", {"exclusive": "", "ntasks": "1"}),
        ("sbatch --exclusive=user --nice -p a,b x.sh", {"exclusive": "user", "nice": "", "partition": "a,b"}),
        ("sbatch --nice=-50 x.sh", {"nice": "-50"}),
        ("sbatch --exclus --ntasks-per-n=4 x.sh", {"exclusive": "", "ntasks-per-node": "4"}),
        ("sbatch -a 1-16%2 -d afterok:1:2,singleton x.sh", {"array": "1-16%2", "dependency": "afterok:1:2,singleton"}),
        ("sbatch -n2 x.sh -n4 --nodes=9", {"ntasks": "2"}),
        ("sbatch -n2 -- -n4", {"ntasks": "2"}),
        ("sbatch -n2 --wrap=run -n 4", {"ntasks": "2", "wrap": "run"}),
        ("srun -n2 -Iv hostname", {"ntasks": "2", "immediate": "v"}),
        ("/usr/bin/srun -W 30 -n2 --het-group=0 a", {"wait": "30", "ntasks": "2", "het-group": "0"}),
        ("sbatch -W -n2 a", {"wait": "", "ntasks": "2"}),
        ("sbatch -n", {"ntasks": ""}),
        ("sbatch", {}),
        ("", {}),
    ],
)
def test_options(line: str, values: dict[str, str]) -> None:
    options = submit_options(line)
    assert dict(options.values) == values
    assert options.unknown == ()


def test_a_job_name_with_blanks_is_no_script() -> None:
    options = submit_options("sbatch -J my long job -N2 x.sh", "my long job")
    assert dict(options.values) == {"job-name": "my long job", "nodes": "2"}


def test_only_scripts_of_sbatch_hide_options() -> None:
    lines = ("sbatch -n2 x.sh", "sbatch", "sbatch --wrap=x", "srun -n2 x.sh", "salloc -n2", "")
    assert [submit_options(line).is_whole for line in lines] == [False, True, True, True, True, True]


def test_unknown_options_are_reported() -> None:
    assert submit_options("sbatch --frobnicate=3 -n2 -Y x.sh").unknown == ("--frobnicate", "-Y")
    assert submit_options("sbatch --n=3 x.sh").unknown == ("--n",)  # nodes, ntasks, ...


def test_which_option_stands_last() -> None:
    options = submit_options("sbatch --mem=1 --mem-per-cpu=2 --mem=3 x.sh")
    assert options.last_of("mem", "mem-per-cpu") == "mem"
    assert options.last_of("begin") == ""


def test_components_of_a_heterogeneous_job() -> None:
    line = "sbatch -n1 : -n2 -C gpu : -n3 x.sh"
    assert [submit_options(line, "", i).values["ntasks"] for i in range(3)] == ["1", "2", "3"]
