"""The configuration of a proxy in docs/service.md, with a real nginx before a real service."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import Running, started

DOCS = Path(__file__).parents[1] / "docs" / "service.md"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed"),
]


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[tuple[Running, int]]:
    """A service, and the port of the proxy."""
    service = started(tmp_path, "--https")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *(
                "-subj",
                "/CN=localhost",
                "-keyout",
                tmp_path / "key.pem",
                "-out",
                tmp_path / "cert.pem",
            ),
        ],
        check=True,
        capture_output=True,
    )
    (text,) = re.findall(r"```nginx\n(.*?)```", DOCS.read_text(), re.DOTALL)
    for there, here in (
        ("/etc/ssl/decisions.pem", tmp_path / "cert.pem"),
        ("/etc/ssl/decisions.key", tmp_path / "key.pem"),
        ("127.0.0.1:8000", f"127.0.0.1:{service.port}"),
        ("listen 443", f"listen 127.0.0.1:{port}"),
    ):
        assert there in text
        text = text.replace(there, str(here))
    where = "".join(
        f"    {kind}_temp_path {tmp_path / kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    head = f"pid {tmp_path / 'pid'};\nerror_log {tmp_path / 'error.log'};\ndaemon off;\n"
    config = tmp_path / "nginx.conf"
    config.write_text(head + text.replace("http {", "http {\n    access_log off;\n" + where, 1))
    nginx = subprocess.Popen(["nginx", "-c", str(config)])
    try:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield service, port
    finally:
        nginx.terminate()
        nginx.wait(30)
        service.stop()


def client(port: int, key: str | None = None) -> httpx.Client:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    return httpx.Client(base_url=f"https://localhost:{port}", verify=context, headers=headers)


def test_the_proxy_of_the_documentation(proxy: tuple[Running, int]) -> None:
    service, port = proxy
    with client(port, service.keys["admin"]) as line:
        made: Any = line.post("/v1/decide", json={"task": "a/b"}).json()
        assert (made["task"], made["step"]) == ("a/b", 1)
        answer = line.post("/v1/reward", json={"token": made["token"], "value": 1})
        assert answer.json() == {"outcome": "counted"}
        assert line.post("/v1/tasks/a%2Fb/close").json() == {"closed": True}
        assert line.get("/v1/tasks?limit=1").json()["tasks"][0]["task"] == "a/b"
        assert line.post("/v1/decide", content=b" " * (17 << 20)).status_code == 413
        assert line.get("/v1/log").status_code == 200
    with client(port) as line:
        assert line.get("/v1/tasks").status_code == 401
        answer = line.post("/watch/login", data={"key": service.keys["read"]})
        assert answer.status_code == 303
        assert "Secure" in answer.headers["set-cookie"]
        assert line.get("/watch/").status_code == 200
