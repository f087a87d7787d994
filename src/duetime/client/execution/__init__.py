"""Running users' functions: handlers, processes, progress reports, schemas."""
