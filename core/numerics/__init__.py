"""Compiled numerical loops that several rooms share.

Holds how loops are compiled and cached, vectorised sums and squared distances. Imports nothing of ours. Any room of
`core` may use `compiled` and the functions of `distances`.
"""
