"""Learning: profiles from the runs of jobs, and the drift of profiles."""
