"""HTTP: connections, requests, the router, server-sent events, OpenAPI and the pages."""
