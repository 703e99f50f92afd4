"""Tables and queries: the only package that speaks SQL; takes nothing from ``core`` but words and errors."""
