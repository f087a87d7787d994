"""The subcommands of `duetime`, one per file."""
