"""The paper's experiments, repeated with today's methods beside them.

May import all rooms below `application`. Only the command line uses it.
"""
