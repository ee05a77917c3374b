"""Probes: each is one source of readings about a running process tree."""
