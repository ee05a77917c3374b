"""Prediction of what a job needs that was never measured, from the jobs that ended before it was submitted."""
