"""Queries that several repositories or pages share; they return rows, never models.

May import `models` and `rows`.
"""
