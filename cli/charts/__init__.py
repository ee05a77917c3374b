"""Pictures of plans, replays, forecasts and calibrations: one figure model, drawn by three backends.

Rule: a figure is built without any drawing library. The terminal, Matplotlib and Bokeh draw the same data from it.
"""
