"""Recovery, syncs, checkpoints, backups, and the check of a data folder."""
