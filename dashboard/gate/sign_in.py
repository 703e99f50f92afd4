"""The routes for signing in and out; what is decided, is decided in alertreview, and every answer is plain HTML."""

import os
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple, Unpack

import anyio
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from alertreview.configuration import WebSettings
from alertreview.rights import Actor
from alertreview.settings import DATABASE_VARIABLE, HOME_VARIABLE
from core.errors import AlertReviewError, RefusedError, SignedOutError
from core.vocabulary import SignInSource
from dashboard.gate import pages
from dashboard.gate.visits import (
    FORM_COOKIE,
    Visit,
    form_key,
    form_of,
    is_at_this_machine,
    keep,
    origin_of,
    proxy_identity,
    safe_target,
)

if TYPE_CHECKING:
    from alertreview.application import Application

Result = TypeVar("Result")
Given = TypeVarTuple("Given")
CHECKS_AT_ONCE = 2
"""Passwords that are hashed side by side: each takes 64 MB, and a flood of them must not take the machine."""
FLOW_COOKIE = "alertreview_oidc"
THEME_FILES = {"logo.svg": "image/svg+xml", "favicon.svg": "image/svg+xml"}

Page = Callable[["SignInRoutes", Request], Awaitable[Response]]


def site_of_process() -> "Application":
    """Return the application of this process."""
    from dashboard import context

    return context.opened_site(os.environ.get(HOME_VARIABLE, ""), os.environ.get(DATABASE_VARIABLE, ""))


def bounce(target: str, base: str) -> HTMLResponse:
    """Let the browser ask once more from this site itself: only then does it send the session's cookie."""
    return pages.go_on(target, "One moment", base=base)


def unavailable(text: str, base: str) -> HTMLResponse:
    """Say why the site cannot be opened."""
    return pages.page("Not available", "", base=base, error=text, status=503)


async def sign_in_by_proxy(visit: Visit, site: "Callable[[], Application]") -> Response:
    """Begin the session of somebody whom the proxy vouches for, and ask for the same page again."""
    login, browser = proxy_identity(visit.connection, visit.web), visit.connection.headers.get("user-agent", "")
    try:
        opened = await run_in_threadpool(site)
        token = await run_in_threadpool(opened.sign_in.vouched, SignInSource.PROXY, login, browser)
    except AlertReviewError as error:
        return pages.page("No account here", "", base=visit.base, error=str(error), status=403)
    response = RedirectResponse(visit.target, 303)
    keep(response, opened.sessions.cookie_name, token, visit)
    return response


def sign_in_app(web: WebSettings, site: "Callable[[], Application]") -> Starlette:
    """Make the small application that answers under /login, /logout, /password, /confirm and /session."""
    routes = SignInRoutes(web, site)
    forms = ["GET", "POST"]
    return Starlette(
        routes=[
            Route("/login", routes.login, methods=forms),
            Route("/login/code", routes.code, methods=forms),
            Route("/login/oidc", routes.to_provider),
            Route("/login/oidc/callback", routes.from_provider),
            Route("/login/style.css", lambda _request: Response(pages.STYLE, media_type="text/css")),
            Route("/login/watch.js", lambda _request: Response(pages.WATCH, media_type="text/javascript")),
            Route("/login/{name}", routes.theme_file),
            Route("/logout", routes.logout, methods=forms),
            Route("/password", routes.password, methods=forms),
            Route("/confirm", routes.confirm, methods=forms),
            Route("/session", routes.session),
        ]
    )


def spoken(handler: Page) -> Page:
    """Show an error of ours as a page; send whoever is not signed in to the sign-in page."""

    @wraps(handler)
    async def answer(self: "SignInRoutes", request: Request) -> Response:
        base = request.scope.get("base", "")
        try:
            return await handler(self, request)
        except SignedOutError:
            return RedirectResponse(f"{base}/login", 303)
        except RefusedError as error:
            return pages.page("Not possible", _back(base), base=base, error=str(error), status=403)
        except AlertReviewError as error:
            return unavailable(str(error), base)

    return answer


class SignInRoutes:
    """Handlers of the routes.

    Parameters
    ----------
    web : WebSettings
    site : callable
        Gives the application.
    """

    def __init__(self, web: WebSettings, site: "Callable[[], Application]") -> None:
        self.web = web
        self.site = site
        self.hashing = anyio.CapacityLimiter(CHECKS_AT_ONCE)

    @spoken
    async def login(self, request: Request) -> Response:
        """Show the form, or sign in."""
        visit, site = self._visit(request), await run_in_threadpool(self.site)
        if request.method == "POST":
            form = await form_of(request)
            target, login = safe_target(form.get("next"), visit.base), form.get("login", "")
            given = (login, form.get("password", ""), request.headers.get("user-agent", ""))
            try:
                token = await self._hashed(site.sign_in.with_password, *given)
            except RefusedError as error:
                return await self._login_page(request, site, target, error=str(error), login=login)
            return await self._enter(visit, site, token, target)
        target = safe_target(request.query_params.get("next"), visit.base)
        if await self._is_in(visit, site):
            return RedirectResponse(target, 303)
        return await self._login_page(request, site, target)

    @spoken
    async def code(self, request: Request) -> Response:
        """Show the form for a one-time code, or spend it."""
        visit, site = self._visit(request), await run_in_threadpool(self.site)
        form = await form_of(request) if request.method == "POST" else {}
        target = safe_target(form.get("next") or request.query_params.get("next"), visit.base)
        error, login = "", form.get("login", "")
        if form:
            try:
                _same_twice(form)
                given = (login, form.get("code", ""), form["password"], request.headers.get("user-agent", ""))
                token = await self._hashed(site.sign_in.with_code, *given)
            except AlertReviewError as refused:
                error = str(refused)
            else:
                return await self._enter(visit, site, token, target)
        key = form_key(request)
        body = pages.code_body(key, target, base=visit.base, login=login)
        return self._keyed(visit, key, pages.page("Choose a password", body, base=visit.base, error=error))

    @spoken
    async def logout(self, request: Request) -> Response:
        """Show the ways out, or sign out here or everywhere."""
        visit, site = self._visit(request), await run_in_threadpool(self.site)
        token = visit.token(site)
        if request.method == "POST":
            await form_of(request)
            everywhere = request.query_params.get("everywhere") == "1"
            await run_in_threadpool(site.sessions.log_out_everywhere if everywhere else site.sessions.log_out, token)
            response = RedirectResponse(f"{visit.base}/login", 303)
            response.delete_cookie(site.sessions.cookie_name, path=f"{visit.base}/")
            return response
        actor = await self._actor(visit, site)
        key = form_key(request)
        body = pages.logout_body(key, actor.name, base=visit.base)
        return self._keyed(visit, key, pages.page("Sign out", body, base=visit.base))

    @spoken
    async def password(self, request: Request) -> Response:
        """Show the form for another password, or change it."""
        visit, site = self._visit(request), await run_in_threadpool(self.site)
        actor, error, notice = await self._actor(visit, site), "", ""
        if request.method == "POST":
            form = await form_of(request)
            try:
                _same_twice(form)
                await self._hashed(site.sign_in.change_password, actor, form.get("old", ""), form["password"])
                notice = "The password is changed; your other devices are signed out."
            except AlertReviewError as refused:
                error = str(refused)
        key = form_key(request)
        body = pages.password_body(key, base=visit.base)
        shown = pages.page("Change password", body, base=visit.base, error=error, notice=notice)
        return self._keyed(visit, key, shown)

    @spoken
    async def confirm(self, request: Request) -> Response:
        """Take fresh credentials for a signature."""
        visit, site = self._visit(request), await run_in_threadpool(self.site)
        actor, error = await self._actor(visit, site), ""
        form = await form_of(request) if request.method == "POST" else {}
        target = safe_target(form.get("next") or request.query_params.get("next"), visit.base)
        if actor.source is SignInSource.OIDC:
            return await self._send_to_provider(visit, site, target, confirms=actor.session_id)
        if form:
            try:
                await self._hashed(site.sign_in.confirm, actor, form.get("password", ""))
                return RedirectResponse(target, 303)
            except RefusedError as refused:
                error = str(refused)
        key = form_key(request)
        body = pages.confirm_body(key, target, actor.name, base=visit.base)
        return self._keyed(visit, key, pages.page("Confirm it is you", body, base=visit.base, error=error))

    @spoken
    async def to_provider(self, request: Request) -> Response:
        """Send the browser to the identity provider."""
        visit, site = self._visit(request), await run_in_threadpool(self.site)
        return await self._send_to_provider(visit, site, safe_target(request.query_params.get("next"), visit.base))

    @spoken
    async def from_provider(self, request: Request) -> Response:
        """Take the browser back from the identity provider."""
        visit, site = self._visit(request), await run_in_threadpool(self.site)
        from alertreview.access.oidc import Provider

        provider = Provider(self.web.oidc, site.sign_in)
        flow_cookie = request.cookies.get(FLOW_COOKIE, "")
        browser = request.headers.get("user-agent", "")
        query = dict(request.query_params)
        target, token = await run_in_threadpool(provider.complete, query, flow_cookie, _callback(visit), browser)
        target = safe_target(target, visit.base)
        response = pages.go_on(target, "Signed in", base=visit.base)
        response.delete_cookie(FLOW_COOKIE, path=f"{visit.base}/login/oidc")
        if token:
            await run_in_threadpool(site.sessions.log_out, visit.token(site))
            keep(response, site.sessions.cookie_name, token, visit)
        return response

    async def session(self, request: Request) -> Response:
        """Return whether the session holds, without keeping it awake."""
        visit = self._visit(request)
        try:
            site = await run_in_threadpool(self.site)
            await self._actor(visit, site)
        except SignedOutError:
            return PlainTextResponse("signed out", 401)
        except AlertReviewError:
            return PlainTextResponse("not available", 503)
        return Response(status_code=204)

    async def theme_file(self, request: Request) -> Response:
        """Return the logo."""
        name = request.path_params["name"]
        if name not in THEME_FILES:
            return PlainTextResponse("There is no such page.", 404)
        return FileResponse(pages.THEME / name, media_type=THEME_FILES[name])

    def _visit(self, request: Request) -> Visit:
        return Visit(request, self.web, request.scope.get("base", ""))

    async def _hashed(self, act: Callable[[Unpack[Given]], Result], *given: *Given) -> Result:
        return await anyio.to_thread.run_sync(lambda: act(*given), limiter=self.hashing)

    async def _actor(self, visit: Visit, site: "Application") -> Actor:
        token = visit.token(site)
        actor = await run_in_threadpool(lambda: site.sessions.who(token, is_act=False))
        if actor.is_demo and not is_at_this_machine(visit.connection, self.web):
            raise SignedOutError("The demonstration is open on its own machine only.")
        return actor

    async def _is_in(self, visit: Visit, site: "Application") -> bool:
        try:
            await self._actor(visit, site)
        except SignedOutError:
            return False
        return True

    async def _login_page(
        self, request: Request, site: "Application", target: str, *, error: str = "", login: str = ""
    ) -> HTMLResponse:
        visit, key = self._visit(request), form_key(request)
        accounts = await run_in_threadpool(site.sessions.has_accounts)
        body = pages.login_body(
            key, target, base=visit.base, login=login, oidc=self.web.oidc is not None, accounts=accounts
        )
        status = 401 if error else 200
        return self._keyed(visit, key, pages.page("Sign in", body, base=visit.base, error=error, status=status))

    @staticmethod
    def _keyed(visit: Visit, key: str, response: HTMLResponse) -> HTMLResponse:
        keep(response, FORM_COOKIE, key, visit)
        return response

    @staticmethod
    async def _enter(visit: Visit, site: "Application", token: str, target: str) -> Response:
        """Go on with a new session; the one before, if any, ends, so that no token from before is worth anything."""
        await run_in_threadpool(site.sessions.log_out, visit.token(site))
        response = RedirectResponse(target, 303)
        keep(response, site.sessions.cookie_name, token, visit)
        response.delete_cookie(FORM_COOKIE, path=f"{visit.base}/")
        return response

    async def _send_to_provider(
        self, visit: Visit, site: "Application", target: str, confirms: int | None = None
    ) -> Response:
        from alertreview.access.oidc import Provider

        provider = Provider(self.web.oidc, site.sign_in)
        address, state = await run_in_threadpool(provider.begin, target, _callback(visit), confirms)
        response = RedirectResponse(address, 303)
        # Lax, not strict: the browser must send it when the provider leads it back here.
        response.set_cookie(
            FLOW_COOKIE,
            state,
            path=f"{visit.base}/login/oidc",
            max_age=600,
            httponly=True,
            samesite="lax",
            secure=origin_of(visit).startswith("https"),
        )
        return response


def _callback(visit: Visit) -> str:
    return f"{origin_of(visit)}{visit.base}/login/oidc/callback"


def _same_twice(form: dict[str, str]) -> None:
    if form.setdefault("password", "") != form.get("again", ""):
        raise RefusedError("The two new passwords differ. Type them again.")


def _back(base: str) -> str:
    return f'<p class="more"><a href="{base}/login">To the sign-in page</a></p>'
