"""Recording what a daemon sees, and playing it to the same loop."""
