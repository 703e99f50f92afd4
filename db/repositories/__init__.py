"""One small class for each subject: takes and returns plain rows, inside the transaction of its unit of work."""
