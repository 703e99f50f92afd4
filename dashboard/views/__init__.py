"""One file a page; each reads one answer of the application and shows it."""
