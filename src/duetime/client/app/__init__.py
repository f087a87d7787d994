"""The App and what users hold of it: tasks, entities, handles, plans."""
