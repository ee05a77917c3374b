"""Slurm's own scheduling rules: the site that they rest on, and the twin that follows them.

Rule: the rules themselves are compiled (`kernels/slurm/`); this folder holds the site as values, and turns it into
tables and results back into values. Nothing here reads a file: `formats/site/` does.
"""
