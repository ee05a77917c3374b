"""Check whether the starts of waiting jobs can be forecast by Slurm's own rules.

Rule: the site is read as the daemon reads it, once; nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....formats.site.site_file_list import PRESENT
from ....formats.site.site_folder import read_site
from ....simulate.errors import ConfigError
from ....simulate.slurm.unfollowed import reasons_not_to_forecast
from ...base import AdapterError
from ...findings import NOTE, OK, Finding
from ..site_commands import site_texts
from ..site_files import JOBS
from ..transport.runner import Runner

TOPIC = "forecasts"


def findings(run: Runner, *, is_wanted: bool) -> Iterator[Finding]:
    """Yield what forecasts of the queue come from, and why.

    Args:
        run: runs a command of Slurm, and returns what it printed.
        is_wanted: the option `twin` is true.
    """
    easy = "starts of waiting jobs are forecast by a replay under EASY, not by Slurm's own rules"
    if not is_wanted:
        yield Finding(OK, TOPIC, f"{easy}: adapter.options.twin is false")
        return
    try:
        answers = site_texts(run, [name for name in PRESENT if name != JOBS])
        site = read_site(answers.texts, jobs=False)
    except (AdapterError, ConfigError) as error:
        yield Finding(NOTE, TOPIC, f"{easy}: {error}")
        return
    if why := next(reasons_not_to_forecast(site, answers.missing), ""):
        yield Finding(NOTE, TOPIC, f"{easy}: {why}")
        return
    names = ", ".join(text.partition(": ")[0] for text in site.unknown)
    rest = f"; not followed: {names} (a running service explains them in status --json)" if names else ""
    yield Finding(OK, TOPIC, f"starts of waiting jobs are forecast by Slurm's own rules{rest}")
