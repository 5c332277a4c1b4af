"""The process around the answers: HTTP, readiness, metrics, Events."""
