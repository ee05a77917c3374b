"""The resource managers pilotfish can stand beside. Imports `simulate` only."""
