"""Running a site: backup and restore, upgrades of the schema, and the doctor.

May import `application` and all rooms below it. The command line and the deployment units use it.
"""
