"""The parts that the adapters of Slurm and OAR share: own jobs, previews, times of reads, and options."""
