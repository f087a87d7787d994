"""The JSON of the API, one noun per file: msgspec Structs that server and client share."""
