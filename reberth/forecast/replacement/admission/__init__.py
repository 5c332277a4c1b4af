"""What the API server does to the next pod, or forbids: plugins, limits, levels, and an autoscaler."""
