"""What every process needs: logs, metrics, an HTTP server, files that are read again when they change."""
