"""Entry point of the dashboard for `streamlit run dashboard/app.py`, `python -m dashboard` and any ASGI server.

Imported by a server, this file makes the application with its gate; run by Streamlit for a browser session, it draws
the frame and the page.
"""

import sys
from pathlib import Path

import streamlit as st

ROOT = str(Path(__file__).resolve().parent.parent)
if ROOT not in sys.path:
    # Started as a file, only this folder is on the path; the packages stand beside it.
    sys.path.insert(0, ROOT)

from core.errors import SettingsError  # noqa: E402 - after the path is set
from dashboard import frame  # noqa: E402 - after the path is set
from dashboard.gate import gate  # noqa: E402 - after the path is set

if st.runtime.scriptrunner.get_script_run_ctx(suppress_warning=True) is None:
    try:
        web = gate.check_settings()
    except SettingsError as error:
        # A sentence, not the traceback that an error at import would end in.
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(error.exit_code)
    app = st.App(
        __file__, middleware=gate.middleware(web), lifespan=gate.lifespan, on_script_error=gate.on_script_error
    )
else:
    frame.draw()
