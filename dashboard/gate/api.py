"""Read-only interface for programs: alerts, studies and labels as JSON, with the rights of the token's person.

It calls the same guarded use cases as the pages, so it refuses what they refuse, and writes nothing but audit rows.
"""

import time
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio
from cachetools import LRUCache
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from alertreview import __version__
from alertreview.cli.alerts import alert_records, list_alerts
from alertreview.rights import Action, Actor, require
from core.errors import AlertReviewError, InvalidInputError, NotFoundError, RefusedError, SignedOutError
from core.kinds import Kind

if TYPE_CHECKING:
    from alertreview.application import Application, Services

API_PATH = "/api"
AT_ONCE = 60
"""Requests of a person in a burst; one more is admitted each second."""
MOST_PEOPLE = 10_000


class AlertQuery(BaseModel):
    """Which alerts of the last published run."""

    model_config = ConfigDict(extra="forbid")
    limit: Annotated[int, Field(ge=1, le=1000, description="How many at most, the most unusual first.")] = 100
    decision: Annotated[
        Literal["omission", "commission"] | None, Field(description="Only decisions not taken, or only those taken.")
    ] = None
    kind: Annotated[Kind | None, Field(description="Only this kind of decision.")] = None
    scorer: Annotated[str, Field(description="Lists of another scorer of the run.", max_length=60)] = ""


class LabelQuery(BaseModel):
    """Which rows of a study."""

    model_config = ConfigDict(extra="forbid")
    layout: Annotated[
        Literal["wide", "long"], Field(description="One row for each case, or for each version of each judgment.")
    ] = "wide"


class NoQuery(BaseModel):
    """Nothing to choose."""

    model_config = ConfigDict(extra="forbid")


Answer = Callable[["Application", "Services", Actor, dict[str, str], Any], tuple[Response, int]]


def alerts(
    site: "Application", mine: "Services", _me: Actor, _path: dict[str, str], query: AlertQuery
) -> tuple[Response, int]:
    """Alerts of the last published run, with the fields of `alertreview alerts --format json`."""
    rows = list_alerts(
        mine,
        query.limit,
        decision=query.decision,
        kind=query.kind.value if query.kind else None,
        scorer=query.scorer,
    )
    return JSONResponse(alert_records(rows, simulated=site.site.simulated)), len(rows)


def studies(
    _site: "Application", mine: "Services", _me: Actor, _path: dict[str, str], _query: NoQuery
) -> tuple[Response, int]:
    """Studies, with their numbers of cases and of complete cases."""
    found = [
        {
            "slug": study.slug,
            "title": study.title,
            "status": study.status.value,
            "n_cases": study.n_cases,
            "n_complete": study.n_complete,
            "simulated": study.simulated,
        }
        for study in mine.studies.all()
    ]
    return JSONResponse(found), len(found)


def labels(
    _site: "Application", mine: "Services", me: Actor, path: dict[str, str], query: LabelQuery
) -> tuple[Response, int]:
    """Labels or judgments of a study as JSON lines: the same file as the Export page makes, with the same audit row."""
    _, content = mine.exports.labels_download(path["slug"], "jsonl", query.layout, person_id=me.person_id)
    return Response(content, media_type="application/x-ndjson"), content.count(b"\n")


ANSWERS: dict[str, tuple[Answer, type[BaseModel], Action]] = {
    "/v1/alerts": (alerts, AlertQuery, Action.SEE_ALERTS),
    "/v1/studies": (studies, NoQuery, Action.SEE_STUDIES),
    "/v1/studies/{slug}/labels": (labels, LabelQuery, Action.EXPORT),
}


class Api:
    """The small application under `API_PATH`."""

    def __init__(self, site: "Callable[[], Application]") -> None:
        self._site = site
        self._mutex = Lock()
        self._left: LRUCache[int, tuple[float, float]] = LRUCache(MOST_PEOPLE)
        self.app = Starlette(
            routes=[
                Route(f"{API_PATH}/v1/openapi.json", description, methods=["GET"]),
                *(Route(API_PATH + path, self._endpoint(path)) for path in ANSWERS),
                Route("/{path:path}", _nothing_here),
            ]
        )

    def _endpoint(self, path: str) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            return await anyio.to_thread.run_sync(self._answer, request, path)

        return endpoint

    def _answer(self, request: Request, path: str) -> Response:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        try:
            site = self._site()
            me = site.api_tokens.who(token.strip() if scheme.lower() == "bearer" else None)
            if not self._admit(me.person_id):
                return _problem(429, "Too many requests. Wait a moment.", {"retry-after": "1"})
            answer, model, action = ANSWERS[path]
            require(me, action)
            query = model.model_validate(dict(request.query_params))
            found, n_rows = answer(site, site.for_program(token.strip()), me, request.path_params, query)
            site.api_tokens.note(me, request.url.path, n_rows)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            return _problem(400, f"{where}: {first['msg']}. See {API_PATH}/v1/openapi.json.")
        except SignedOutError as error:
            return _problem(401, str(error), {"www-authenticate": "Bearer"})
        except NotFoundError as error:
            return _problem(404, str(error))
        except RefusedError as error:
            return _problem(403, str(error))
        except InvalidInputError as error:
            return _problem(400, str(error))
        except AlertReviewError as error:
            return _problem(503, str(error))
        return found

    def _admit(self, person_id: int) -> bool:
        """Count a request of a person: a bucket of `AT_ONCE` that fills by one each second."""
        now = time.monotonic()
        with self._mutex:
            left, at = self._left.pop(person_id, (float(AT_ONCE), now))
            left = min(float(AT_ONCE), left + now - at)
            may = left >= 1.0
            self._left[person_id] = (left - 1.0 if may else left, now)
        return may


def _problem(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": text}, status, headers)


async def _nothing_here(_request: Request) -> Response:
    return _problem(404, f"There is no such address. See {API_PATH}/v1/openapi.json.")


async def description(_request: Request) -> Response:
    """Return the description of the interface, which needs no token and says nothing of the site."""
    return JSONResponse(openapi())


def openapi() -> dict[str, Any]:
    """Return the OpenAPI description, made from the routes and the models of their queries."""
    paths = {}
    for path, (answer, model, _) in ANSWERS.items():
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        of_query = [
            {
                "name": name,
                "in": "query",
                "required": False,
                "description": field.description or name,
                "schema": _inlined(schema["properties"][name], schema),
            }
            for name, field in model.model_fields.items()
        ]
        of_path = [
            {"name": "slug", "in": "path", "required": True, "description": "Short name.", "schema": {"type": "string"}}
        ]
        kind = "application/x-ndjson" if answer is labels else "application/json"
        rows: dict[str, Any] = (
            {"type": "object"} if answer is labels else {"type": "array", "items": {"type": "object"}}
        )
        answers = {"200": {"description": "Rows.", "content": {kind: {"schema": rows}}}}
        answers |= {status: {"description": text} for status, text in _REFUSALS.items()}
        paths[API_PATH + path] = {
            "get": {
                "summary": (answer.__doc__ or "").split("\n")[0],
                "operationId": answer.__name__,
                "parameters": [*(of_path if "{slug}" in path else []), *of_query],
                "responses": answers,
            }
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "alertreview", "version": __version__, "description": "Read-only interface of a site."},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
    }


_REFUSALS = {
    "400": "A parameter cannot be used.",
    "401": "The token is missing, unknown, revoked or expired.",
    "403": "The person may not see this.",
    "404": "There is no such study.",
    "429": "Too many requests.",
    "503": "The site cannot be read now.",
}


def _inlined(value: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter with what it refers to, without title, so that it stands alone."""
    text = {name: part for name, part in value.items() if name not in {"title", "description"}}
    if "$ref" in text:
        return {**schema["$defs"][text["$ref"].rpartition("/")[2]]}
    if "anyOf" in text:
        text["anyOf"] = [_inlined(one, schema) for one in text["anyOf"]]
    return text
