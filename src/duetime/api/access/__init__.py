"""Access: tokens, roles, scopes, quotas, and limits of connections, calls and bytes for each caller."""
