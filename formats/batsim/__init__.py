"""Batsim's workloads: their jobs, profiles and run times."""
