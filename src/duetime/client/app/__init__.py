"""The App and its objects: tasks, entities, handles, options."""
