"""The same service over gRPC: `duetime.v1`, on a separate port."""
