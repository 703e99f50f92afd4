"""Numbers and rules: arrays and data frames in, arrays and frozen dataclasses out; no database, web or clock."""
