"""The real dashboard as a process of its own, asked over HTTP and its websocket without a browser."""

import contextlib
import http.client
import io
import itertools
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect

from alertreview.cli.main import main
from tests.conftest import ROOT
from tests.support.isolated import run_apart
from tests.support.pieces import require
from tests.support.sign_in_desk import PASSWORD

NGINX_EXAMPLE = ROOT / "docs" / "deploy" / "nginx.conf"
START_SECONDS = 120


_ports = itertools.count(os.getpid() * 61)


def free_port() -> int:
    """Find a port on the loopback address that nobody uses, and that nobody gets by chance before it is used.

    It lies below those that the system gives to connections, and other test processes begin their search elsewhere.
    """
    for number in _ports:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", 16_384 + number % 16_000))
            return int(probe.getsockname()[1])
    raise AssertionError


def command_line(*arguments: str) -> str:
    """Do what a command of the program does, in this process; gives what it printed."""
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()) as errors:
        code = main(list(arguments))
    assert code == 0, errors.getvalue()
    return printed.getvalue()


def new_site(home: Path) -> str:
    """Make an empty site with an account for ada, a coordinator; gives her one-time code."""
    command_line("init", "--home", str(home))
    given = ("--role", "coordinator", "--login", "ada", "--home", str(home))
    code = re.search(r"[A-Z0-9]{4}(?:-[A-Z0-9]{4})+", command_line("account", "create", "Ada", *given))
    assert code is not None
    return code[0]


@contextlib.contextmanager
def running(
    arguments: Sequence[str], log: Path, environment: Mapping[str, str]
) -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    """Start a module as a server on a free port; gives port and process, and stops it in the end."""
    port = free_port()
    command = [sys.executable, "-m", *arguments, "--port", str(port)]
    with log.open("wb") as output:
        server = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment}, stdout=output, stderr=output)
    try:
        wait_for_port(port, server, log)
        yield port, server
    finally:
        if server.poll() is None:
            server.terminate()
            try:
                server.wait(timeout=30)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


@contextlib.contextmanager
def dashboard(home: Path, log: Path, **environment: str) -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    """Start the dashboard as its systemd unit does; gives port and process, and stops it in the end."""
    site = {"ALERTREVIEW_HOME": str(home), "ALERTREVIEW_DATABASE": "", **environment}
    with running(["alertreview", "dashboard", "--no-browser"], log, site) as started:
        yield started


def wait_for_port(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Wait until somebody listens."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(log.read_text(encoding="utf-8", errors="replace"))


@contextlib.contextmanager
def nginx(folder: Path, behind: int) -> Iterator[int]:
    """Run nginx with the example's server, without its TLS; gives its port."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin")
    require(program is not None, "nginx", "apt install nginx-light")
    port, log = free_port(), folder / "nginx.log"
    site = NGINX_EXAMPLE.read_text(encoding="utf-8")
    for shipped, here in (
        ("listen 443 ssl;", f"listen 127.0.0.1:{port};"),
        ("    ssl_certificate     /etc/ssl/certs/alertreview.pem;\n", ""),
        ("    ssl_certificate_key /etc/ssl/private/alertreview.key;\n", ""),
        ("    ssl_protocols TLSv1.2 TLSv1.3;\n", ""),
        ("http://127.0.0.1:8501", f"http://127.0.0.1:{behind}"),
    ):
        assert shipped in site, shipped
        site = site.replace(shipped, here)
    paths = "".join(f"{kind}_temp_path {folder};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off;\npid {folder}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{paths}{site}}}\n",
        encoding="utf-8",
    )
    with log.open("wb") as output:
        process = subprocess.Popen([str(program), "-c", str(config), "-p", str(folder)], stderr=output)
    try:
        wait_for_port(port, process, log)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=30)


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    text: str
    cookies: list[str]
    """As they were set, with all their rules."""

    @property
    def location(self) -> str:
        return self.headers["location"]


@dataclass
class Visitor:
    """Somebody with a browser's cookies, who follows nothing by himself.

    Parameters
    ----------
    port : int
        On this machine.
    host : str
        Name that he believes the site has; None for the address itself.
    """

    port: int
    host: str = ""
    cookies: dict[str, str] = field(default_factory=dict)

    def ask(self, path: str, form: dict[str, str] | None = None, method: str = "") -> Answer:
        """Ask for a path, or send a form there."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_SECONDS)
        headers = {"Host": self._host, "Cookie": self._sent(path)}
        body = None
        if form is not None:
            body = urlencode(form)
            headers |= {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://{self._host}"}
        try:
            link.request(method or ("GET" if form is None else "POST"), path, body, headers)
            answer = link.getresponse()
            cookies = answer.headers.get_all("set-cookie") or []
            for cookie in cookies:
                for name, value in SimpleCookie(cookie).items():
                    self.cookies[name] = value.value
            text = answer.read().decode("utf-8", "replace")
            return Answer(answer.status, {n.lower(): v for n, v in answer.headers.items()}, text, cookies)
        finally:
            link.close()

    def choose_password(self, base: str, code: str, target: str) -> Answer:
        """Open an account with its one-time code."""
        form = {"login": "ada", "code": code, "password": PASSWORD, "again": PASSWORD, "next": target}
        return self.ask(f"{base}/login/code", {**form, "form_key": form_key(self.ask(f"{base}/login/code").text)})

    def draw(self, path: str, page: str = "") -> str:
        """Open the websocket, have a page drawn (by its path; the first one), and give all that was sent as text."""
        return run_apart(self._draw(path, page))

    async def _draw(self, path: str, page: str) -> str:
        message = BackMsg()
        message.rerun_script.page_name = page
        message.rerun_script.context_info.url = f"http://{self._host}/"
        received: list[bytes] = []
        async with connect(
            f"ws://{self._host}{path}",
            host="127.0.0.1",
            port=self.port,
            origin=f"http://{self._host}",  # type: ignore[arg-type]
            subprotocols=["streamlit"],  # type: ignore[list-item]
            additional_headers={"Cookie": self._sent(path)},
            max_size=None,
            proxy=None,
            open_timeout=START_SECONDS,
        ) as link:
            await link.send(message.SerializeToString())
            while True:
                frame = await link.recv()
                received.append(frame if isinstance(frame, bytes) else frame.encode())
                answer = ForwardMsg()
                answer.ParseFromString(received[-1])
                if answer.WhichOneof("type") == "script_finished":
                    return b"\n".join(received).decode("utf-8", "ignore")

    @property
    def _host(self) -> str:
        return self.host or f"127.0.0.1:{self.port}"

    def _sent(self, _path: str) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items() if value)


def form_key(page: str) -> str:
    """Return the key of a form on a page."""
    found = re.search(r'name="form_key" value="([^"]+)"', page)
    assert found is not None, page
    return found[1]
