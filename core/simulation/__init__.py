"""Simulated data with known truth: hospital, readers, and the paper's D1 to D3.

May import `core.cohort`, `core.events` and the ground. The demonstration, the reproduction of the paper
and the tests use it; nothing that scores real records does.
"""
