"""Programs for developers of Duetime; not part of the package."""
