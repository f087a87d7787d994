"""The arguments of commands: options, filters, times, the address of a server."""
