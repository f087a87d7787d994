"""The subcommands of `duetime`, one a file."""
