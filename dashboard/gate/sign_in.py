"""Routes outside the pages: signing in and out, and health. The rules are in alertreview; answers are plain HTML."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from alertreview.access.sessions import OWNER_LOGIN
from alertreview.access.throttle import TOO_MANY, Throttle
from alertreview.configuration import WebSettings
from core.errors import AlertReviewError, RefusedError, SignedOutError
from core.vocabulary import SessionId, SignInSource
from dashboard.gate import pages
from dashboard.gate.visits import FORM_COOKIE, Visit, form_of, safe_target

if TYPE_CHECKING:
    from alertreview.application import Application

CHECKS_AT_ONCE = 2
"""Passwords hashed in parallel: each takes 64 MB, and a flood of sign-ins must not exhaust the machine."""
FLOW_COOKIE = "alertreview_oidc"
HEALTH_PATHS = frozenset({"/health", "/ready"})
SIGN_IN_PATHS = frozenset({"/login", "/logout", "/password", "/confirm", "/session"})
THEME_FILES = {
    "logo.svg": "image/svg+xml",
    "favicon.svg": "image/svg+xml",
    "login.css": "text/css",
    "page.js": "text/javascript",
    "watch.js": "text/javascript",
    "source-sans.woff2": "font/woff2",
}

Form: TypeAlias = dict[str, str]
Handler: TypeAlias = "Callable[[Visit, Application, Form], Response]"


def unavailable(text: str, base: str) -> Response:
    """Return the page that says why the site cannot be opened."""
    return pages.page("Not available", "", base=base, error=text, status=503)


class Routes:
    """The small application of `SIGN_IN_PATHS` and `HEALTH_PATHS`.

    A handler gets the visit, the site's application and the form, which is empty for GET, and runs in a thread.
    """

    def __init__(self, web: WebSettings, site: "Callable[[], Application]") -> None:
        self.web = web
        self.site = site
        self._throttle: Throttle | None = None
        self._of_strangers = anyio.CapacityLimiter(CHECKS_AT_ONCE)
        self._of_known = anyio.CapacityLimiter(CHECKS_AT_ONCE)
        self.app = Starlette(
            routes=[
                self._form("/login", self.login, throttled=True),
                self._form("/login/code", self.code, throttled=True),
                self._form("/logout", self.logout, hashes=False),
                self._form("/password", self.password),
                self._form("/confirm", self.confirm),
                Route("/login/oidc", self._shown(self.to_provider)),
                Route("/login/oidc/callback", self._shown(self.from_provider)),
                Route("/login/link", self._shown(self.link)),
                Route("/login/{name}", theme_file),
                Route("/session", self.session),
                Route("/health", alive),
                Route("/ready", self.ready),
            ]
        )

    def login(self, visit: Visit, site: "Application", form: Form) -> Response:
        """Show the ways in, or sign in with a password."""
        target, login, error = visit.next_page(form), form.get("login", ""), ""
        if form:
            try:
                token = site.sign_in.with_password(login, form.get("password", ""), visit.browser, visit.address)
                return self._enter(visit, site, token, target)
            except RefusedError as refused:
                error = str(refused)
        elif self._is_signed_in(visit, site):
            return RedirectResponse(target, 303)
        ways = {"oidc": self.web.oidc is not None, "accounts": site.sessions.has_accounts()}
        body = pages.login_body(visit.form_key, target, base=visit.base, login=login, **ways)
        return _keyed(visit, "Sign in", body, error=error, status=401 if error else 200)

    def code(self, visit: Visit, site: "Application", form: Form) -> Response:
        """Show the form for a one-time code, or spend the code."""
        target, login, error = visit.next_page(form), form.get("login", ""), ""
        if form:
            try:
                code, password = form.get("code", ""), _new_password(form)
                token = site.sign_in.with_code(login, code, password, visit.browser, visit.address)
                return self._enter(visit, site, token, target)
            except AlertReviewError as refused:
                error = str(refused)
        body = pages.code_body(visit.form_key, target, base=visit.base, login=login)
        return _keyed(visit, "Choose a password", body, error=error)

    def link(self, visit: Visit, site: "Application", _form: Form) -> Response:
        """Sign the owner in by the one-time link that the terminal shows."""
        code = visit.connection.query_params.get("code", "")
        return self._enter(
            visit, site, site.sign_in.with_link(OWNER_LOGIN, code, visit.browser, visit.address), f"{visit.base}/"
        )

    def logout(self, visit: Visit, site: "Application", form: Form) -> Response:
        """Show the ways out, or sign out here or everywhere."""
        if not form:
            return _keyed(visit, "Sign out", pages.logout_body(visit.form_key, visit.who(site).name, base=visit.base))
        everywhere = visit.connection.query_params.get("everywhere") == "1"
        (site.sessions.log_out_everywhere if everywhere else site.sessions.log_out)(visit.token(site))
        response = RedirectResponse(f"{visit.base}/login", 303)
        response.delete_cookie(site.sessions.cookie_name, path=f"{visit.base}/")
        return response

    def password(self, visit: Visit, site: "Application", form: Form) -> Response:
        """Show the form for another password, or change it."""
        actor, error, notice = visit.who(site), "", ""
        if form:
            try:
                site.sign_in.change_password(actor, form.get("old", ""), _new_password(form))
                notice = "The password is changed; your other devices are signed out."
            except AlertReviewError as refused:
                error = str(refused)
        body = pages.password_body(visit.form_key, base=visit.base)
        return _keyed(visit, "Change password", body, error=error, notice=notice)

    def confirm(self, visit: Visit, site: "Application", form: Form) -> Response:
        """Handle fresh credentials for a signature."""
        actor, target, error = visit.who(site), visit.next_page(form), ""
        if actor.source is SignInSource.OIDC:
            return self._send_to_provider(visit, site, target, confirms=actor.session_id)
        if form:
            try:
                site.sign_in.confirm(actor, form.get("password", ""))
                return RedirectResponse(target, 303)
            except RefusedError as refused:
                error = str(refused)
        body = pages.confirm_body(visit.form_key, target, actor.name, base=visit.base)
        return _keyed(visit, "Confirm your identity", body, error=error)

    def to_provider(self, visit: Visit, site: "Application", form: Form) -> Response:
        """Send the browser to the identity provider."""
        return self._send_to_provider(visit, site, visit.next_page(form))

    def from_provider(self, visit: Visit, site: "Application", _form: Form) -> Response:
        """Handle the browser's return from the identity provider."""
        from alertreview.access.oidc import Provider

        query, flow_cookie = dict(visit.connection.query_params), visit.connection.cookies.get(FLOW_COOKIE, "")
        provider = Provider(self.web.oidc, site.sign_in)
        target, token = provider.complete(query, flow_cookie, _callback(visit), visit.browser)
        response = pages.go_on(safe_target(target, visit.base), "Signed in", base=visit.base)
        response.delete_cookie(FLOW_COOKIE, path=f"{visit.base}/login/oidc")
        if token:
            site.sessions.log_out(visit.token(site))
            visit.set_cookie(response, site.sessions.cookie_name, token)
        return response

    def by_proxy(self, visit: Visit) -> Response:
        """Start the session of a person whom the proxy vouches for, and reload the page."""
        try:
            site = self.site()
            token = site.sign_in.vouched(SignInSource.PROXY, visit.proxy_identity, visit.browser)
        except AlertReviewError as error:
            return pages.page("No account here", "", base=visit.base, error=str(error), status=403)
        response = RedirectResponse(visit.target, 303)
        visit.set_cookie(response, site.sessions.cookie_name, token)
        return response

    def session(self, request: Request) -> Response:
        """Return whether the session holds, without extending it."""
        try:
            self._visit(request).who(self.site())
        except SignedOutError:
            return PlainTextResponse("signed out", 401)
        except AlertReviewError:
            return PlainTextResponse("not available", 503)
        return Response(status_code=204)

    def ready(self, _request: Request) -> Response:
        """Return whether the site can work now; a watchdog never hears the reason."""
        try:
            self.site().database.check()
        except Exception:  # noqa: BLE001 - whatever it is, the answer is "not ready"
            return JSONResponse({"status": "not ready"}, 503)
        return JSONResponse({"status": "ready"})

    def _form(self, path: str, handler: Handler, *, hashes: bool = True, throttled: bool = False) -> Route:
        shown = self._shown(handler, hashes=hashes, throttled=throttled)
        return Route(path, shown, methods=["GET", "POST"])

    def _shown(
        self, handler: Handler, *, hashes: bool = False, throttled: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that runs a handler and shows its errors as pages.

        People at addresses from which somebody signed in lately do not queue behind those who try passwords elsewhere.
        """

        async def endpoint(request: Request) -> Response:
            visit = self._visit(request)
            try:
                form = await form_of(request) if request.method == "POST" else {}
                is_known = True
                if form and throttled:
                    is_known = await self._admit(visit.address)
                lane = self._of_known if is_known else self._of_strangers
                return await anyio.to_thread.run_sync(
                    lambda: handler(visit, self.site(), form), limiter=lane if form and hashes else None
                )
            except SignedOutError:
                return RedirectResponse(f"{visit.base}/login", 303)
            except RefusedError as error:
                back = f'<p class="more"><a href="{visit.base}/login">Back to sign-in</a></p>'
                return pages.page("Not possible", back, base=visit.base, error=str(error), status=403)
            except AlertReviewError as error:
                return unavailable(str(error), visit.base)

        return endpoint

    async def _admit(self, address: str) -> bool:
        """Count an attempt before anything else is done for it; return whether somebody signed in from there lately.

        A flood is refused here without a thread and without the database, but for one audit row a burst: raise
        RefusedError if too many attempts were made from the address, or from everywhere.
        """
        if self._throttle is None:
            self._throttle = (await anyio.to_thread.run_sync(self.site)).sign_in.throttle
        may, begins = self._throttle.admit(address)
        if begins:
            await anyio.to_thread.run_sync(lambda: self.site().sign_in.note_refused(address))
        if not may:
            raise RefusedError(TOO_MANY)
        return self._throttle.knows(address)

    def _visit(self, request: Request) -> Visit:
        return Visit(request, self.web, request.scope.get("base", ""))

    @staticmethod
    def _is_signed_in(visit: Visit, site: "Application") -> bool:
        try:
            visit.who(site)
        except SignedOutError:
            return False
        return True

    @staticmethod
    def _enter(visit: Visit, site: "Application", token: str, target: str) -> Response:
        """Continue with a new session; the browser's former one ends."""
        site.sessions.log_out(visit.token(site))
        response = RedirectResponse(target, 303)
        visit.set_cookie(response, site.sessions.cookie_name, token)
        response.delete_cookie(FORM_COOKIE, path=f"{visit.base}/")
        return response

    def _send_to_provider(
        self, visit: Visit, site: "Application", target: str, confirms: SessionId | None = None
    ) -> Response:
        from alertreview.access.oidc import Provider

        address, state = Provider(self.web.oidc, site.sign_in).begin(target, _callback(visit), confirms)
        response = RedirectResponse(address, 303)
        # Lax, not strict: the browser must send it when the provider leads it back here.
        response.set_cookie(
            FLOW_COOKIE,
            state,
            path=f"{visit.base}/login/oidc",
            max_age=600,
            httponly=True,
            samesite="lax",
            secure=visit.is_secure,
        )
        return response


async def alive(_request: Request) -> Response:
    """Return that the process answers."""
    return JSONResponse({"status": "alive"})


def theme_file(request: Request) -> Response:
    """Return a file of the sign-in pages."""
    name = request.path_params["name"]
    if name not in THEME_FILES:
        return PlainTextResponse("There is no such page.", 404)
    return FileResponse(
        pages.typeface() if name.endswith(".woff2") else pages.THEME / name, media_type=THEME_FILES[name]
    )


def _keyed(visit: Visit, title: str, body: str, *, error: str = "", notice: str = "", status: int = 200) -> Response:
    """Return a page with a form, and the cookie that ties the form to this browser."""
    response = pages.page(title, body, base=visit.base, error=error, notice=notice, status=status)
    visit.set_cookie(response, FORM_COOKIE, visit.form_key)
    return response


def _callback(visit: Visit) -> str:
    scheme = "https" if visit.is_secure else "http"
    return f"{scheme}://{visit.connection.headers.get('host', '')}{visit.base}/login/oidc/callback"


def _new_password(form: Form) -> str:
    password = form.get("password", "")
    if password != form.get("again", ""):
        raise RefusedError("The two new passwords differ. Type them again.")
    return password
