"""Job and node profiles: store, probes, measurement, prediction, calibration. Imports `formats` and `simulate`."""
