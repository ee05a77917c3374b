"""Analysis of finished runs: metrics, step functions of time, power, and rasters of rectangles.

Rule: averages over an interval are exact, so the total is preserved however coarse a chart is.
"""
