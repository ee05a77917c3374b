"""The folder of a site as the policy `slurm:SITE`."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path

from ...simulate.errors import ConfigError
from ...simulate.queue_policies.loaded_policies import SITE
from ...simulate.slurm.site import Site
from ...simulate.slurm.site_policy import SlurmRules, without_period
from .site_folder import read_site
from .site_rules import chosen_version

#: What stands between a site and the version whose rules are followed.
_VERSION = ":version="
#: Begins of sentences about files that only a site's own period needs.
_OF_THE_PERIOD = ("no events.psv", "no sshare.psv", "no reservations.psv")


def read_slurm_policy(text: str, folder: Path = Path()) -> SlurmRules:
    """Return Slurm's own rules at a site as a policy of replays.

    Args:
        text: `slurm:SITE`, or `slurm:SITE:version=25.11` for the rules and defaults of another Slurm than the site's;
            SITE is a folder as `read_site` reads it; its jobs are not read.
        folder: where a relative SITE begins.

    Raises:
        ConfigError: there is no such site or version, or a file of the site is wrong.
    """
    place, version = policy_folder(text, folder)
    site = without_period(read_site(place, jobs=False, version=version))
    unknown = tuple(sentence for sentence in site.unknown if not sentence.startswith(_OF_THE_PERIOD))
    return SlurmRules(text, replace(site, unknown=unknown))


def policy_folder(text: str, folder: Path = Path()) -> tuple[Path, tuple[int, int] | None]:
    """Return the folder of a policy `slurm:SITE`, and the version that its text names; see `read_slurm_policy`."""
    name, version = text.removeprefix(SITE), None
    if _VERSION in name and not (folder / name).is_dir():
        name, _, words = name.rpartition(_VERSION)
        version = chosen_version(words)
    if not name or not (folder / name).is_dir():
        raise ConfigError("policy", "", f"{text!r}: no such folder", f"{SITE}SITE, the folder of a site of Slurm")
    return folder / name, version


def site_digest(site: Site) -> str:
    """Return a hash of all that a site is."""
    return hashlib.sha256(json.dumps(asdict(site), sort_keys=True, default=sorted).encode()).hexdigest()
