"""Simulated worlds: the clock, the jobs, the resources, and parts that know nothing of each other."""
