"""The worker process: its connections to servers and its deliveries."""
