"""The sign-in pages: plain HTML without a script, served before Streamlit is reached."""

from html import escape
from pathlib import Path
from urllib.parse import quote

import streamlit
from starlette.responses import HTMLResponse

THEME = Path(__file__).resolve().parents[1] / "theme"

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
{head}<title>{title} · alertreview</title><link rel="stylesheet" href="{base}/login/login.css">
<link rel="icon" href="{base}/login/favicon.svg"></head>
<body><main><img class="logo" src="{base}/login/logo.svg" alt="alertreview">
<h1>{title}</h1>{message}{body}</main></body></html>
"""
NO_ACCOUNTS = """<p>Nobody can sign in here yet. Whoever runs this site creates the first administrator
on its machine:</p>
<pre>alertreview account create "Your Name" --role administrator --login yourname</pre>
<p>The command prints a one-time code, valid for 24 hours. <a href="{base}/login/code">Use the code here</a>
to choose a password. People who read alerts or judge cases then get accounts of their own, on the Admin page or by the
same command.</p>
<p>Only for yourself, on this machine: <code>alertreview dashboard</code> prints a link that signs you in as the owner
of the site, who has every role.</p>"""


def typeface() -> Path:
    """Return the file of the pages' typeface, which Streamlit brings with it."""
    return next((Path(streamlit.__file__).parent / "static" / "static" / "media").glob("SourceSansVF-Upright*.woff2"))


def page(
    title: str, body: str, *, base: str, error: str = "", notice: str = "", status: int = 200, head: str = ""
) -> HTMLResponse:
    """Return a page; texts are escaped here, `body` is markup of this module."""
    message = f'<p class="error" role="alert">{escape(error)}</p>' if error else ""
    message += f'<p class="notice" role="status">{escape(notice)}</p>' if notice else ""
    return HTMLResponse(
        PAGE.format(title=escape(title), body=body, base=escape(base), message=message, head=head), status_code=status
    )


def field(
    label: str, name: str, *, kind: str = "text", complete: str = "off", value: str = "", focus: bool = False
) -> str:
    """Return a labelled field."""
    return (
        f'<label for="{name}">{escape(label)}</label><input id="{name}" name="{name}" type="{kind}" required '
        f'autocomplete="{complete}" value="{escape(value)}" maxlength="400" spellcheck="false" '
        f'autocapitalize="none"{" autofocus" if focus else ""}>'
    )


def form(action: str, key: str, fields: str, button: str, *, target: str = "", quiet: bool = False) -> str:
    """Return a form tied to this browser by its key."""
    return (
        f'<form method="post" action="{escape(action)}"><input type="hidden" name="form_key" value="{escape(key)}">'
        f'<input type="hidden" name="next" value="{escape(target)}">{fields}'
        f'<button type="submit"{" class=quiet" if quiet else ""}>{escape(button)}</button></form>'
    )


def login_body(key: str, target: str, *, base: str, login: str = "", oidc: bool = False, accounts: bool = True) -> str:
    """Return the form for login and password, with links to the other ways in."""
    if not accounts:
        return NO_ACCOUNTS.format(base=escape(base))
    fields = field("Login", "login", complete="username", value=login, focus=not login)
    fields += field("Password", "password", kind="password", complete="current-password", focus=bool(login))
    onward = quote(target, safe="")
    body = form(f"{base}/login", key, fields, "Sign in", target=target)
    if oidc:
        link = f'<a class="button" href="{base}/login/oidc?next={onward}">Sign in with your hospital account</a>'
        body = f"<p>{link}</p>{body}"
    return body + f'<p class="more"><a href="{base}/login/code?next={onward}">I have a one-time code</a></p>'


def code_body(key: str, target: str, *, base: str, login: str = "") -> str:
    """Return the form for a one-time code and a first password."""
    fields = field("Login", "login", complete="username", value=login, focus=True)
    fields += field("One-time code", "code", complete="one-time-code")
    fields += field("New password, at least 12 characters", "password", kind="password", complete="new-password")
    fields += field("Repeat the new password", "again", kind="password", complete="new-password")
    return form(f"{base}/login/code", key, fields, "Set password and sign in", target=target)


def password_body(key: str, *, base: str) -> str:
    """Return the form to change the password."""
    fields = field("Current password", "old", kind="password", complete="current-password", focus=True)
    fields += field("New password, at least 12 characters", "password", kind="password", complete="new-password")
    fields += field("Repeat the new password", "again", kind="password", complete="new-password")
    return form(f"{base}/password", key, fields, "Change password") + f'<p class="more"><a href="{base}/">Back</a></p>'


def confirm_body(key: str, target: str, name: str, *, base: str) -> str:
    """Return the form to confirm credentials."""
    fields = field("Password", "password", kind="password", complete="current-password", focus=True)
    words = f"<p>Enter your password again to sign as {escape(name)}.</p>"
    return words + form(f"{base}/confirm", key, fields, "Confirm", target=target)


def logout_body(key: str, name: str, *, base: str) -> str:
    """Return the forms to sign out here or everywhere."""
    return (
        f"<p>You are signed in as {escape(name)}.</p>"
        + form(f"{base}/logout", key, "", "Sign out")
        + form(f"{base}/logout?everywhere=1", key, "", "Sign out on every device", quiet=True)
        + f'<p class="more"><a href="{base}/">Stay signed in</a> · <a href="{base}/password">Change password</a></p>'
    )


def go_on(target: str, title: str, *, base: str) -> HTMLResponse:
    """Return a page that opens another one from this site, so that the browser sends the session's cookie."""
    head = f'<meta http-equiv="refresh" content="0;url={escape(target)}">'
    return page(title, f'<p><a href="{escape(target)}">Continue</a></p>', base=base, head=head)
