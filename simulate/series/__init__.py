"""What a finished run was like over time: step functions, power, rectangles on a grid, figures of merit.

Rule: averages over an interval are exact, so that no work is lost or made however coarse a picture is.
"""
