"""Prediction of the needs of unmeasured jobs, from jobs that ended before their submission."""
