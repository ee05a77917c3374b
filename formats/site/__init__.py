"""Sites of Slurm: slurm.conf and the dumps of sacctmgr, scontrol and sacct as one value, `simulate.slurm.site.Site`."""

from __future__ import annotations

from .site_folder import read_site as read_site
