"""Parts of the review and the open panel: answers, the session's state, the panel card."""
