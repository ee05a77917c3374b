"""SimGrid's platforms: the file, its clusters and its network."""
