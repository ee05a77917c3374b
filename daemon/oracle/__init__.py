"""Oracles: who forecasts the starts of the jobs that the resource manager alone decides about."""
