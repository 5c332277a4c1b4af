"""PLAN: order proposals, weigh them, reserve room, refuse with a reason, explain."""
