"""Queue policies: their interface, their SPECs, and how they decide in Python."""
