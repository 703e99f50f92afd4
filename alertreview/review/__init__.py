"""Judging cases: a reader's queue, judgments, open panels, adjudication, blinding.

May import `access`, `alerts`, `studies` and the ground. The pages use its services through the application.
"""
