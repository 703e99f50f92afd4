"""The gate in front of the pages: middleware, headers, health, sign-in and its pages.

May import `context`. Only the entry point and the frame use it.
"""
