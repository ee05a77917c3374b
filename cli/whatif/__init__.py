"""Replays of a site under its own scheduler, as it is and with changes."""
