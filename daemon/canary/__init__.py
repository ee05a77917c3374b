"""The canary: a stable random share of the eligible jobs is handed over, and the others are the control group."""
