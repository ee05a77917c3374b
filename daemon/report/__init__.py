"""Reports: metrics, accuracy, the forecasts of the queue, the log of each job and the report of each cycle."""
