"""Slow proofs and measurements; each is a module with a `main` that takes arguments and returns an exit code."""
