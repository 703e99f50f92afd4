"""Work on whole databases: copies, inspection, roles of a server, bulk loading.

May import every room of `db`.
"""
