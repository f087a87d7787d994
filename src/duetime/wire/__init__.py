"""What crosses the network, one noun a file: msgspec Structs for servers and clients."""
