"""EASY on machines that can be switched off, under limits of power or energy.

Rule: a machine that can be used counts as free whether it is on or off; who is given one that is off begins after its
boot. All else is as in `easy`.
"""
