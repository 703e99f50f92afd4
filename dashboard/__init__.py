"""The Streamlit pages: frame, views and components; no SQL and no statistics."""
