"""Sites of Slurm: slurm.conf and the dumps of sacctmgr, scontrol and sacct as one value, `simulate.slurm.site.Site`."""
