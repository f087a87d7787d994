"""The alarm for the next due moment, the watch on the event loop, and loading ahead of time."""
