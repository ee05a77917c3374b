"""Transports: the requests to Slurm, its commands and the parsers of their output."""
