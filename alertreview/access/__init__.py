"""Who is there: accounts, sessions, sign-in, the people of the site, the audit trail.

May import the ground. `alertreview.rights` says who may do what; `guard` tells it who calls.
"""
