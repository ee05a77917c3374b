"""The Python form of policies that save energy or keep within a limit of power."""
