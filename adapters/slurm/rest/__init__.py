"""Slurm over slurmrestd: the same records as by commands, without a process for each request.

Rule: what slurmrestd offers is detected, never assumed. An answer is read whole or it is an error. What REST cannot do
is reported before anything is sent, so that a command can do it.
"""
