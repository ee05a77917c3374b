"""Sweeps: workloads x machines x policies x seeds, each combination a run; and which of them are worth having.

Rule: pure; what a run is, is said here, how it is carried out is the daemon's.
"""
