"""The messages of gRPC, made out of proto/ by `make proto`, and how to call the server with them.

Servers and clients share this room; it knows nothing of Duetime but the names of its messages.
"""
