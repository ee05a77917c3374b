"""EASY and strict order on machines that can be switched off, under limits of power or energy.

Rule: a usable machine counts as free whether it is on or off; a job that gets one that is off starts after its boot.
All else is as in `queue.easy`.
"""
