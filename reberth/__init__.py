"""The library: what is known of a cluster, what is remembered, forecasts, and the way to the API server."""
