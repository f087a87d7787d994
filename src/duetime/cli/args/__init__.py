"""What commands read: options, filters, times, the address of a server."""
