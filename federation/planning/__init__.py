"""What controllers decide, without their I/O; and a plan: what all of them would do with the hub as it is.

Controllers carry these decisions out against an API server, the plan against a copy of the hub's objects.
"""
