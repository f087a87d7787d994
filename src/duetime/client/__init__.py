"""The client side, for users' programs: `App`, `Client` and the worker."""
