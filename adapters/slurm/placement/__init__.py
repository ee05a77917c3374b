"""Placement: where and when each job that was handed over may start, by the rules of Slurm and its site."""
