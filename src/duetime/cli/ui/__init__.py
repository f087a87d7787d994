"""The output of commands: tables, bars, completion."""
