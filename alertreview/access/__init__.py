"""Who may do what: accounts, sessions, sign-in, roles, the audit trail, and the guard.

`guard` stands before every use case that a page calls. May import `exports`, `alerts` and the ground. The dashboard
reaches the application through `guard` only.
"""
