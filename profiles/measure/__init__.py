"""Measuring jobs: from readings of probes to one measurement."""
