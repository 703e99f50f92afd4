"""Engines, the write lock, and driver errors in words.

May import nothing else of `db`.
"""
