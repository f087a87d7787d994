"""The HTTP and gRPC interfaces of a server. One noun per file."""
