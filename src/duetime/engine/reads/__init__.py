"""What can be read of a running engine: views, pages, progress, counters, gauges."""
