"""Options of scripts that accounting stores: which lines count, and what the command overrides."""

from __future__ import annotations

from pathlib import Path

from pilotfish.formats.site.job_scripts import job_scripts
from pilotfish.formats.site.site_folder import read_site
from tests.support.slurm_site_files import records, row, write_site

LINE = "-" * 80
SCRIPT = """\
#!/bin/bash
# a comment
#SBATCH -N 2 --exclusive  # all of them
##SBATCH --nice=7
#PBS -l walltime=9

#SBATCH --job-name="two words" --array=1-9%3 -p a,b
#SBATCH --no-such-option
module load x
#SBATCH -n 99
"""


def dump(*scripts: tuple[str, str]) -> str:
    return "\n".join(f"Batch Script for {job}\n{LINE}\n{script}" for job, script in scripts)


def test_the_lines_before_the_first_command_count() -> None:
    options = job_scripts(dump(("7", SCRIPT)))["7"]
    assert dict(options.values) == {
        "nodes": "2", "exclusive": "", "job-name": "two words", "array": "1-9%3", "partition": "a,b",
    }  # fmt: skip
    assert options.unknown == ("--no-such-option",)


def test_titles_inside_scripts_and_jobs_without_one() -> None:
    forged = f"#!/bin/sh\n#SBATCH -N 1\necho\nBatch Script for 7\n{LINE}\n#!/bin/sh\n#SBATCH -N 9\n"
    scripts = job_scripts(dump(("7", SCRIPT), ("8", forged), ("9", "NONE\n"), ("10_4", "#!/bin/sh\n#SBATCH 'x\n")))
    assert {job: options.values.get("nodes") for job, options in scripts.items()} == {"7": "2", "8": "1", "10_4": None}
    assert job_scripts("") == {}


def test_the_command_counts_more_than_the_script(tmp_path: Path) -> None:
    jobs = records(
        row(JobID="7_1", SubmitLine="sbatch -p fast x.sh"),
        row(JobID="7_2", SubmitLine="sbatch --wrap=x"),
        row(JobID="8", SubmitLine="sbatch y.sh"),
    )
    site = read_site(write_site(tmp_path, sacct_psv=jobs, scripts_txt=dump(("7", SCRIPT))))
    first, wrapped, other = site.jobs
    assert (first.partitions, first.min_nodes, first.is_exclusive, first.array_limit) == (("fast",), 2, True, 3)
    assert (wrapped.partitions, wrapped.array_limit, other.partitions) == (("main",), None, ("main",))
    assert "options that are not known: --no-such-option" in site.unknown
    assert any(sentence.startswith("1 job submitted as a script") for sentence in site.unknown)
