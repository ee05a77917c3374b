"""Limits of QOS and of associations from rows of sacctmgr, whose columns have short and long names.

Rule: an empty field, and -1, is no limit. A limit that a replay does not follow is counted.
Source: sacctmgr(1) of Slurm 22.05.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from ...simulate.slurm.site import SiteLimits
from .. import slurm_values
from .bar_table import Record


def _wall(text: str) -> float | None:
    """Return minutes of a span; None for none."""
    seconds = None if text.startswith("-") else slurm_values.span(text)
    return None if seconds is None else seconds / 60


_COUNT, _AMOUNTS = slurm_values.limit, slurm_values.amounts
#: Field -> how it is read, and the names of its column, in lower case without blanks.
_COLUMNS: dict[str, tuple[Callable[[str], Any], tuple[str, ...]]] = {
    "group_jobs": (_COUNT, ("grpjobs",)),
    "group_submit": (_COUNT, ("grpsubmit", "grpsubmitjobs")),
    "group_wall_min": (_wall, ("grpwall",)),
    "group_tres": (_AMOUNTS, ("grptres",)),
    "group_tres_minutes": (_AMOUNTS, ("grptresmins",)),
    "group_run_minutes": (_AMOUNTS, ("grptresrunmins", "grptresrunmin")),
    "max_jobs": (_COUNT, ("maxjobs",)),
    "max_submit": (_COUNT, ("maxsubmit", "maxsubmitjobs")),
    "max_wall_min": (_wall, ("maxwall", "maxwalldurationperjob")),
    "max_tres": (_AMOUNTS, ("maxtres", "maxtrespj", "maxtresperjob")),
    "max_tres_per_node": (_AMOUNTS, ("maxtrespernode", "maxtrespn")),
    "max_tres_minutes": (_AMOUNTS, ("maxtresmins", "maxtresminspj", "maxtresminsperjob")),
    "group_accrue": (_COUNT, ("grpjobsaccrue",)),
    "max_accrue": (_COUNT, ("maxjobsaccrue",)),
    "user_accrue": (_COUNT, ("maxjobsaccruepu", "maxjobsaccrueperuser")),
    "account_accrue": (_COUNT, ("maxjobsaccruepa", "maxjobsaccrueperaccount")),
    "min_tres": (_AMOUNTS, ("mintres", "mintrespj", "mintresperjob")),
    "user_jobs": (_COUNT, ("maxjobspu", "maxjobsperuser")),
    "user_submit": (_COUNT, ("maxsubmitpu", "maxsubmitjobspu", "maxsubmitjobsperuser")),
    "user_tres": (_AMOUNTS, ("maxtrespu", "maxtresperuser")),
    "account_jobs": (_COUNT, ("maxjobspa", "maxjobsperaccount")),
    "account_submit": (_COUNT, ("maxsubmitpa", "maxsubmitjobspa", "maxsubmitjobsperaccount")),
    "account_tres": (_AMOUNTS, ("maxtrespa", "maxtresperaccount")),
    "user_run_minutes": (_AMOUNTS, ("maxtresrunminspu", "maxtresrunminsperuser")),
    "account_run_minutes": (_AMOUNTS, ("maxtresrunminspa", "maxtresrunminsperaccount")),
}
#: Columns that are not followed if they are set: field -> texts that mean that they are not.
_UNFOLLOWED = {"usagethres": ("0", "0.000000")}


def site_limits(record: Record, unfollowed: Counter[str]) -> SiteLimits:
    """Return the limits of a QOS or of an association.

    Args:
        record: a row of `sacctmgr show qos` or `show assoc`.
        unfollowed: receives the columns that are set and not followed.

    Raises:
        ValueError: a value cannot be read.
    """
    values = dict[str, Any]()
    for field, (convert, columns) in _COLUMNS.items():
        if text := record.text(*columns):
            values[field] = convert(text)
    for name, none in _UNFOLLOWED.items():
        if (text := record.text(name)) and text not in none and text != "-1":
            unfollowed[name] += 1
    return SiteLimits(**values)
