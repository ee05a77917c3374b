"""Commands about the needs of jobs and of nodes: profile, predict, calibrate."""
