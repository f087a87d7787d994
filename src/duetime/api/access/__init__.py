"""Access: tokens, roles, scopes, quotas, and how many connections, calls and bytes each caller may have."""
