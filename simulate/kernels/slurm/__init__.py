"""Slurm's rules, compiled: priorities, the choice of nodes, the two passes, and the clocks that start them.

Rule: times are whole seconds since the epoch, as slurmctld's are; a function is named for what it does, and its
docstring says which rule of Slurm it is. Sets of nodes are rows of 64-bit words.
"""
