"""Analysis of finished runs: metrics, step functions of time, power, and rasters of rectangles."""
