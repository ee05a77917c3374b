"""Reports: metrics, forecast errors, the log of each job and the report of each cycle."""
