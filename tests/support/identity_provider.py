"""A small identity provider on loopback: discovery, keys and tokens of one client, which tests bend."""

import base64
import hashlib
import hmac
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

from alertreview.configuration import OidcSettings

KEY = RSAKey.generate_key(2048, {"kid": "one"})
OTHER_KEY = RSAKey.generate_key(2048, {"kid": "one"})
SECRET_FILE = Path(__file__).with_name("secret.txt")
CALLBACK = "http://127.0.0.1:8501/login/oidc/callback"


def forged(header: dict[str, Any], claims: dict[str, Any]) -> str:
    """A token without signature, or signed with the public key as if it were a shared one."""
    body = ".".join(_base64(json.dumps(part).encode()) for part in (header, claims))
    signature = hmac.digest(KEY.as_pem(private=False), body.encode(), "sha256") if header["alg"] == "HS256" else b""
    return f"{body}.{_base64(signature)}"


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


class SmallProvider:
    """Discovery, keys and tokens of one client; tests bend the claims."""

    def __init__(self) -> None:
        self.claims: dict[str, Any] = {}
        self.key = KEY
        self.header = {"alg": "RS256", "kid": "one"}
        self.asked: dict[str, str] = {}
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.endswith("openid-configuration"):
                    self.answer(provider.metadata())
                else:
                    self.answer({"keys": [KEY.as_dict(private=False)]})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                answer = provider.token({name: values[0] for name, values in parse_qs(body).items()})
                self.answer(answer, 200 if "id_token" in answer else 400)

            def answer(self, content: dict[str, Any], status: int = 200) -> None:
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        # It looks often whether it is to end: every test waits for that.
        looks = {"poll_interval": 0.01}
        threading.Thread(target=self.server.serve_forever, kwargs=looks, daemon=True).start()

    def settings(self, path: str = "") -> OidcSettings:
        return OidcSettings(issuer=f"{self.url}{path}", client_id="alertreview", client_secret_file=SECRET_FILE)

    def metadata(self) -> dict[str, str]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
        }

    def authorize(self, address: str) -> dict[str, str]:
        """Do what the person does there: sign in, and be led back with these parameters."""
        self.asked = dict(parse_qsl(urlsplit(address).query))
        return {"state": self.asked["state"], "code": "a code"}

    def token(self, form: dict[str, str]) -> dict[str, Any]:
        challenge = _base64(hashlib.sha256(form["code_verifier"].encode()).digest())
        if form["code"] != "a code" or challenge != self.asked["code_challenge"] or form["redirect_uri"] != CALLBACK:
            return {"error": "invalid_grant"}
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": "alertreview",
            "sub": "1",
            "iat": now,
            "exp": now + 60,
            "auth_time": now,
            "nonce": self.asked["nonce"],
            "preferred_username": "Vera@clinic",
            **self.claims,
        }
        kept = {name: value for name, value in claims.items() if value is not None}
        forges = self.header["alg"] in {"HS256", "none"}
        token = forged(self.header, kept) if forges else jwt.encode(self.header, kept, self.key)
        return {"access_token": "x", "token_type": "Bearer", "id_token": token}
