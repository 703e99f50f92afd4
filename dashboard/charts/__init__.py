"""Plotly figures: each function takes numbers and a palette and returns a chart with its text alternative.

May import `dashboard.texts` only.
"""
