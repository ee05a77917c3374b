"""The card of a dry run: what Slurm did, what its twin does, and what pilotfish would have done."""
