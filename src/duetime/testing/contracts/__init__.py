"""The contracts of logs, stores and channels, as test classes to subclass."""
