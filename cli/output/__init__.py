"""What people look at: tables, the Gantt chart in the terminal, the Gantt chart as a picture, the live view.

Rule: it reads plans and snapshots and returns text; it decides nothing and starts nothing.
"""
