"""The process that leads: lease, loop, monitors."""
