"""Who gets in: hosts, origins, tokens, sizes; and what every answer says to a browser."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
import starlette.requests
from fastapi.testclient import TestClient

from msg2.errors import InputError
from msg2.server import security
from msg2.server.settings import ServerSettings
from tests.server.conftest import HERE, TOAST, Open, learnt, refused, uploaded

TOKEN = "a0b1c2d3e4f5a6b7c8d9"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8765",
        "127.0.0.1.evil.example",
        "",
        "[::1",
        "10.0.0.1",
        "evil@127.0.0.1",
        "evil:x@localhost",
        "127.0.0.1/x",
        "127.0.0.1:80:80",
        "127.0.0.1#",
        "2130706433",
        "[127.0.0.1]",
        "127.0.0.1.",
    ],
)
def test_another_host_is_refused(shared_client: TestClient, host: str) -> None:
    """A name that an attacker points at this machine (DNS rebinding)."""
    answer = shared_client.get("/api/data", headers={"Host": host})
    assert refused(answer, 403) == "the Host header names another machine"


@pytest.mark.parametrize("host", ["localhost", "localhost:1234", "127.0.0.1", "[::1]:8765"])
def test_every_name_of_this_machine_will_do(shared_client: TestClient, host: str) -> None:
    assert shared_client.get("/api/data", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://localhost:8765"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"},
    ],
)
def test_another_site_is_refused(shared_client: TestClient, headers: dict[str, str]) -> None:
    for answer in (
        shared_client.get("/api/data", headers=headers),
        shared_client.post("/api/data?name=a.csv", content=TOAST, headers=headers),
    ):
        assert refused(answer, 403) == "the request comes from another site"
    assert shared_client.get("/api/data").json() == {"data": []}


def test_the_app_itself_and_links_to_it_get_in(client: TestClient) -> None:
    own = {"Origin": HERE, "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/data?name=a.csv", content=TOAST, headers=own).status_code == 201
    assert client.get("/", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}).status_code == 200
    assert client.get("/", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "iframe"}).status_code == 403


ALLOWED = "https://kitchen.example"
PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization, content-type"}


def test_a_site_that_is_allowed_gets_in_with_the_token(open_app: Open) -> None:
    client = open_app(token=TOKEN, allowed_origins=(ALLOWED, "capacitor://localhost"))
    foreign = {"Origin": ALLOWED, "Sec-Fetch-Site": "cross-site"}
    asked = client.options("/api/runs", headers={**foreign, **PREFLIGHT})
    assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (200, ALLOWED)
    assert "authorization" in asked.headers["access-control-allow-headers"].lower()
    assert "access-control-allow-credentials" not in asked.headers
    client.get(f"/?token={TOKEN}")  # a session of the browser does not help
    nobody = client.get("/api/runs", headers=foreign)
    assert refused(nobody, 401) == "this app wants to know its token"
    assert nobody.headers["access-control-allow-origin"] == ALLOWED  # so that its script can say so
    for method in ("GET", "DELETE"):
        answer = client.request(method, "/api/runs", headers={**foreign, "Authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == (200 if method == "GET" else 405)
        assert answer.headers["access-control-allow-origin"] == ALLOWED
        assert "origin" in answer.headers["vary"].lower()
    app = client.get("/api/runs", headers={"Origin": "capacitor://localhost", "Authorization": f"Bearer {TOKEN}"})
    assert app.headers["access-control-allow-origin"] == "capacitor://localhost"
    for path in ("/", "/static/app.js"):  # the API is for others, the screens are not
        refused(client.get(path, headers={**foreign, "Authorization": f"Bearer {TOKEN}"}), 403)


@pytest.mark.parametrize("origin", ["https://evil.example", "http://kitchen.example", f"{ALLOWED}:8443", "null",
                                    "https://kitchen.example.evil", f"https://evil.example/?{ALLOWED}"])  # fmt: skip
def test_a_site_that_is_not_allowed_gets_nothing(open_app: Open, origin: str) -> None:
    client = open_app(token=TOKEN, allowed_origins=(ALLOWED,))
    for answer in (
        client.options("/api/runs", headers={"Origin": origin, **PREFLIGHT}),
        client.get("/api/runs", headers={"Origin": origin, "Authorization": f"Bearer {TOKEN}"}),
    ):
        assert refused(answer, 403) == "the request comes from another site"
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("origin", ["*", "null", "kitchen.example", f"{ALLOWED}/", f"{ALLOWED}:443", "http://a b",
                                    "https://Kitchen.example", "http://kitchen.example:80", ""])  # fmt: skip
def test_what_no_browser_sends_as_an_origin_is_no_origin(origin: str) -> None:
    with pytest.raises(InputError, match="is no origin as browsers send it"):
        ServerSettings(allowed_origins=(ALLOWED, "http://[::1]:3000", origin))


@pytest.mark.parametrize(
    "options", [{"host": "0.0.0.0"}, {"host": "10.0.0.1"}, {"token": "short"}, {"token": "x y" * 9}]
)
def test_another_address_needs_a_token_worth_the_name(options: dict[str, str]) -> None:
    with pytest.raises(InputError, match="token"):
        ServerSettings(**options)  # type: ignore[arg-type]


def test_without_the_token_nothing_is_told(open_app: Open) -> None:
    client = open_app(host="0.0.0.0", token=TOKEN)
    for path in ("/", "/api/data", "/api/openapi.json", "/static/app.js", "/nowhere", "/?token=wrong"):
        answer = client.get(path, headers={"Host": "10.0.0.1:8765"})
        assert refused(answer, 401) == "this app wants to know its token"
    for wrong in ("Bearer", "Bearer ", f"Basic {TOKEN}", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", "Bearer ä"):
        assert client.get("/api/data", headers={"Authorization": wrong.encode()}).status_code == 401


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "token"])
def test_the_token_opens_by_header(open_app: Open, scheme: str) -> None:
    client = open_app(token=TOKEN)
    assert client.get("/api/data", headers={"Authorization": f"{scheme} {TOKEN}"}).status_code == 200
    assert client.get("/api/data").status_code == 401


def test_the_token_is_traded_for_a_session(open_app: Open) -> None:
    client = open_app(token=TOKEN)
    cookies = set()
    for _ in range(2):
        welcome = client.get(f"/?token={TOKEN}", follow_redirects=False)
        assert (welcome.status_code, welcome.headers["location"]) == (303, "/")
        cookie = welcome.headers["set-cookie"]
        assert TOKEN not in cookie
        assert {"httponly", "samesite=lax", "path=/"} <= set(cookie.lower().split("; "))
        cookies.add(cookie)
    assert len(cookies) == 2  # random
    assert client.get("/api/data").status_code == 200
    refused(client.get("/api/data", headers={"Origin": "http://evil.example"}), 403)
    old = client.get("/graph/x?token=of-yesterday&a=b", follow_redirects=False)
    assert (old.status_code, old.headers["location"]) == (303, "/graph/x?a=b")
    name, _, value = next(iter(cookies)).partition(";")[0].partition("=")
    for forged in ("", value[:-1], f"x{value}", value.partition(".")[0], "."):
        client.cookies.clear()
        assert client.get("/api/data", headers={"Cookie": f"{name}={forged}"}).status_code == 401


def test_a_session_outlives_the_server_but_its_folder_is_its_own(open_app: Open, tmp_path: Path) -> None:
    first = open_app(token=TOKEN)
    first.get(f"/?token={TOKEN}")
    cookies = {"Cookie": "; ".join(f"{name}={value}" for name, value in first.cookies.items())}
    first.__exit__(None, None, None)
    again = open_app(token=TOKEN)
    assert again.get("/api/data", headers=cookies).status_code == 200
    again.__exit__(None, None, None)
    assert (
        open_app(token=TOKEN[::-1]).get("/api/data", headers=cookies).status_code == 401
    )  # a session of another token
    other = open_app(token=TOKEN, folder=tmp_path / "other")
    assert other.get("/api/data", headers=cookies).status_code == 401


def test_a_session_expires_and_is_of_one_port(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    client = open_app(token=TOKEN)
    cookie = client.get(f"/?token={TOKEN}", follow_redirects=False).headers["set-cookie"]
    assert cookie.startswith("msg2-8765=")
    assert "max-age=2592000" in cookie.lower()
    assert client.get("/api/data").status_code == 200
    now = time.time()
    for days, status in ((29, 200), (31, 401)):
        monkeypatch.setattr(security.time, "time", lambda days=days: now + days * 24 * 3600)
        assert client.get("/api/data").status_code == status


def test_only_sessions_are_parsed_as_cookies(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """To take apart what is in quotes takes seconds for 60 KB, on the event loop, and nobody needs a token for that."""
    parsed, parse = list[str](), starlette.requests.cookie_parser

    def seen(text: str) -> dict[str, str]:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr(starlette.requests, "cookie_parser", seen)
    client = open_app(token=TOKEN)
    client.get(f"/?token={TOKEN}")
    (name, value), *_ = client.cookies.items()
    client.cookies.clear()
    hostile = 'a="' + '\\"' * 30_000 + '"; msg2-1="' + '\\"' * 3000 + f'"; msg2-2={"a" * 999}'
    assert client.get("/api/data", headers={"Cookie": hostile}).status_code == 401
    assert client.get("/api/data", headers={"Cookie": f"{hostile}; {name}={value}; b=c"}).status_code == 200
    assert {text for text in parsed if text} == {f"{name}={value}"}


def test_so_many_guesses_do_not_hold_connections(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    client = open_app(token=TOKEN)
    monkeypatch.setattr(security, "_MAX_GUESSES", 0)
    assert "too many wrong tokens" in refused(client.get("/api/data", headers={"Authorization": "Bearer x"}), 429)
    assert client.get("/api/data", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_who_guesses_waits_longer_and_longer(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    client, waited = open_app(token=TOKEN), list[float]()
    delay = security.Authenticator._delay_of_guess

    def wait_not_at_all(authenticator: security.Authenticator) -> float:
        waited.append(delay(authenticator))
        return 0.0

    monkeypatch.setattr(security.Authenticator, "_delay_of_guess", wait_not_at_all)
    for place in range(10):
        wrong = {"headers": {"Authorization": f"Bearer {place}"}} if place % 2 else {"params": {"token": str(place)}}
        assert client.get("/", **wrong).status_code == 401  # type: ignore[arg-type]
    assert client.get("/api/data", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert waited == [*(0.02 * 2**place for place in range(8)), 5.0, 5.0]


def test_a_browser_without_the_token_is_asked_for_it(open_app: Open) -> None:
    answer = open_app(token=TOKEN).get("/graph/x", headers={"Accept": "text/html,*/*"})
    assert answer.status_code == 401
    assert "Token <input" in answer.text
    assert "form-action 'self'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("path", ["//evil.example", "/%0d%0aX-Evil:%20yes", "/\\evil.example"])
def test_the_welcome_leads_nowhere_else(open_app: Open, path: str) -> None:
    client = open_app(token=TOKEN)
    welcome = client.get(f"{HERE}{path}?token={TOKEN}&a=b", follow_redirects=False)
    assert welcome.status_code == 303
    assert re.match(r"/[^/\\]|/$", welcome.headers["location"])
    assert "x-evil" not in welcome.headers


def test_too_much_is_refused_before_it_is_read(open_app: Open, tmp_path: Path) -> None:
    client = open_app(upload_megabytes=1, body_megabytes=1)
    read = 0

    def endless():  # type: ignore[no-untyped-def]
        nonlocal read
        for _ in range(5000):
            read += 1
            yield b"x" * 10_000

    assert "1 MB" in refused(client.post("/api/data?name=a.csv", content=b"x" * (1 << 20) + b"x"), 413)
    assert "1 MB" in refused(client.post("/api/data?name=a.csv", content=endless()), 413)
    assert "1 MB" in refused(client.post("/api/infer", content=b"[" * (2 << 20)), 413)
    assert list((tmp_path / "work" / "data").iterdir()) == []
    assert uploaded(client)


def test_answers_tell_browsers_to_be_strict(client: TestClient) -> None:
    work = learnt(client, uploaded(client)["id"])
    for path in ("/", "/draw", "/static/app.js", "/api/data", "/nowhere", f"/api/work/{work['id']}/as/html"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
    assert client.get(f"/api/work/{work['id']}/as/html").headers["content-disposition"].startswith("attachment")


def test_the_page_of_a_graph_is_kept_apart(client: TestClient) -> None:
    work = learnt(client, uploaded(client)["id"])
    policy = client.get(f"/page/{work['id']}").headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in policy


def test_screens_ask_for_nothing_from_elsewhere(shared_client: TestClient) -> None:
    for name in (
        "index.html",
        *re.findall(r'"\./(\w+\.js)"', shared_client.get("/static/app.js").text),
        "app.css",
        "page.css",
    ):
        text = shared_client.get("/static/" + name).text if name != "index.html" else shared_client.get("/").text
        assert not re.search(r"https?://", text)
        assert "innerHTML" not in text
        assert "eval(" not in text


@pytest.mark.parametrize(
    "path",
    ["/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/page/../../etc/passwd", "/page/" + "g" * 32,
     "/page/" + "0" * 32, "/api/work/" + "0" * 32 + "/as/json"],
)  # fmt: skip
def test_paths_lead_nowhere(shared_client: TestClient, path: str) -> None:
    assert shared_client.get(path).status_code in (404, 422)
