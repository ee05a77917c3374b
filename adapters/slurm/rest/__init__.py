"""Slurm over slurmrestd: the same records and the same protocol as by its commands, without a process for each look.

Rule: what slurmrestd offers is found out, never assumed; an answer is read whole or it is an error; whatever REST
cannot do is said before anything is sent, so that a command can do it.
"""
