"""Options of sbatch, salloc and srun from the SubmitLine of sacct: short, glued, long, abbreviated; the last counts.

Rule: SubmitLine is the words of the command, joined by blanks, without quotes; the first word that is no option begins
the script. What stands in the script (`#SBATCH`) is seen only if the script is there, too, and counts less; what stands
in the environment (`SBATCH_*`) is not seen. An option that is not in the table is reported, never guessed.
Source: sbatch(1), salloc(1) and srun(1) of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace


def _table(text: str) -> dict[str, str]:
    """Return long name -> letter of options such as `account:A`; "" for one without a letter."""
    return {name: letter for name, _, letter in (word.partition(":") for word in text.split())}


#: Long options with a value, and their letters.
_VALUES = _table(
    "account:A array:a acctg-freq batch bb bbf begin:b chdir:D cluster cluster-constraint clusters:M comment "
    "constraint:C container container-id core-spec:S cores-per-socket cpu-freq cpus-per-gpu cpus-per-task:c deadline "
    "delay-boot dependency:d distribution:m error:e exclude:x export export-file extra extra-node-info:B gid "
    "het-group gpu-bind gpu-freq gpus:G gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint input:i "
    "job-name:J jobid kill-on-invalid-dep licenses:L mail-type mail-user mcs-label mem mem-bind mem-per-cpu "
    "mem-per-gpu mincpus network nodefile:F nodelist:w nodes:N ntasks:n ntasks-per-core ntasks-per-gpu "
    "ntasks-per-node ntasks-per-socket oom-kill-step open-mode output:o partition:p power prefer priority profile "
    "qos:q reservation segment signal sockets-per-node switches thread-spec threads-per-core time:t time-min tmp "
    "tres-bind tres-per-task uid wait-all-nodes wckey wrap bcast-exclude cpu-bind epilog mpi prolog relative:r "
    "slurmd-debug task-epilog task-prolog max-threads threads:T"
)
#: Long options without a value.
_FLAGS = _table(
    "contiguous help:h hold:H ignore-pbs no-bell no-requeue no-shell oversubscribe:s overcommit:O parsable quiet:Q "
    "reboot requeue share spread-job test-only usage use-min-nodes verbose:v version:V wait:W bell disable-status:X "
    "exact interactive label:l multi-prog overlap preserve-env:E unbuffered:u whole stepmgr consolidate-segments "
    "debugger-test no-allocate:Z quit-on-interrupt"
)
#: Long options whose value, if any, is glued: `--exclusive=user`.
_OPTIONAL = _table(
    "exclusive get-user-env immediate:I kill-command resv-ports kill-on-bad-exit:K nice no-kill:k propagate pty x11 "
    "bcast compress send-libs"
)
_KINDS = {**dict.fromkeys(_VALUES, "value"), **dict.fromkeys(_FLAGS, "flag"), **dict.fromkeys(_OPTIONAL, "optional")}
#: srun waits for some seconds, sbatch for the end of the job.
_KINDS_OF_SRUN = {**_KINDS, "wait": "value"}
_LETTERS = {letter: name for table in (_VALUES, _FLAGS, _OPTIONAL) for name, letter in table.items() if letter}
#: Names of one option.
_SAME = {"share": "oversubscribe", "cluster": "clusters"}
#: Most words that are looked at.
MOST_WORDS = 2000


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """The options of a command.

    Args:
        values: long name -> value of the last such option; "" for one without a value.
        order: long names in the order of the words, the last one last.
        unknown: options that are not in the table.
        is_whole: whether no script can hold further options: only sbatch reads them, and not if the command is wrapped.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    is_whole: bool = False

    def last_of(self, *names: str) -> str:
        """Return which of these options stands last; "" without any of them."""
        return next((name for name in reversed(self.order) if name in names), "")

    def over(self, script: SubmitOptions) -> SubmitOptions:
        """Return these options, and those of a script that stand before them."""
        return SubmitOptions(
            {**script.values, **self.values}, script.order + self.order, script.unknown + self.unknown, is_whole=True
        )


def has_value(name: str) -> bool:
    """Return whether an option always has a value."""
    return name in _VALUES


def submit_options(line: str, job_name: str = "", component: int = 0) -> SubmitOptions:
    """Return the options of a SubmitLine. O(words).

    Args:
        line: the words of the command, joined by blanks.
        job_name: the name of the job, which may have blanks.
        component: which part of a heterogeneous job it is; the options of parts are divided by a colon.
    """
    command, *words = line.split(maxsplit=MOST_WORDS) or [""]
    program = command.rpartition("/")[2]
    kinds = _KINDS_OF_SRUN if program == "srun" else _KINDS
    for _ in range(component):
        words = words[words.index(":") + 1 :] if ":" in words else words
    options = _parsed(words, kinds, job_name)
    is_whole = not words or "wrap" in options.values or program != "sbatch"
    return replace(options, is_whole=is_whole)


def script_options(lines: Iterable[Sequence[str]]) -> SubmitOptions:
    """Return the options of the `#SBATCH` lines of a script, each as words."""
    options = SubmitOptions()
    for words in lines:
        options = _parsed(words, _KINDS, "").over(options)
    return options


def _parsed(words: Sequence[str], kinds: Mapping[str, str], job_name: str) -> SubmitOptions:
    """Return the options that words begin with."""
    values, order, unknown = dict[str, str](), list[str](), list[str]()
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if word == "--" or not word.startswith("-") or word == "-":
            break
        for name, text in _options(word, kinds):
            if not name:
                unknown.append(text or "")
                continue
            value = text
            if value is None:
                value = words[place] if place < len(words) else ""
                place += 1
            if name == "job-name":
                while value != job_name and job_name.startswith(f"{value} ") and place < len(words):
                    value += f" {words[place]}"
                    place += 1
            values[_SAME.get(name, name)] = value
            order.append(_SAME.get(name, name))
        if order[-1:] == ["wrap"]:
            break  # the rest is the text of the command
    return SubmitOptions(values, tuple(order), tuple(unknown))


def _options(word: str, kinds: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    """Yield the options of a word: name and value; None: the value is the next word; no name: it is not known."""
    if word.startswith("--"):
        text, equals, value = word[2:].partition("=")
        name = _long_name(text)
        kind = kinds.get(name, "")
        if not kind:
            yield "", f"--{text}"
        else:
            yield name, value if equals or kind != "value" else None
        return
    letters = word[1:]
    while letters:
        letter, letters = letters[0], letters[1:]
        name = _LETTERS.get(letter, "")
        kind = kinds.get(name, "")
        if not kind:
            yield "", f"-{letter}"
            return
        if kind == "flag":
            yield name, ""
            continue
        yield name, letters if letters or kind == "optional" else None
        return


def _long_name(text: str) -> str:
    """Return the long name that the text is, or the only one that begins with it; "" if it has no such name."""
    if text in _KINDS:
        return text
    names = [name for name in _KINDS if text and name.startswith(text)]
    return names[0] if len(names) == 1 else ""
