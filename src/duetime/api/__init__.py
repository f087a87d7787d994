"""HTTP and gRPC: what users of a server see. One noun a file."""
