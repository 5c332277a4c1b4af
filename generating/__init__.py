"""What code writes for the repository: the policy with its comments, the dashboard, the alerts."""
