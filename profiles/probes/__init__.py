"""Probes: one source of readings about a running process tree each."""
