"""Deliveries that clients pull, over gRPC or HTTP: names of consumers, outcomes, claims."""
