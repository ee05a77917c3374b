"""Learning: profiles from the runs of jobs, and the forecast errors that the guard and the intervals follow."""
