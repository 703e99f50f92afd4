"""Setting studies up and following them: cases, readers, progress, locking, and their results as rows.

May import `scoring`, `records` and the ground.
"""
