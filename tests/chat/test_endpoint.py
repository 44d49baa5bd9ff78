"""What an endpoint sends -> text and tool calls, or one sentence that says what is wrong and what to do."""

from __future__ import annotations

import socket

import pytest
from support.chats import KEY
from support.model_servers import Failed, Said, chat_server

from skillkit import ModelUnavailableError
from skillkit.chat.endpoint import Endpoint, ToolCall

QUESTION = [{"role": "user", "content": "hi"}]


def answered(*answers: Said | Failed, key: str = KEY) -> list[str | ToolCall]:
    with chat_server(*answers) as server:
        endpoint = Endpoint("a-model", server.address, key, "TUTOR_KEY")
        try:
            return list(endpoint.stream(QUESTION))
        finally:
            endpoint.close()


def test_text_comes_in_pieces_and_calls_are_put_together() -> None:
    call = ("skills_run_script", {"skill_name": "demo", "args": ["le chat", "été"]})
    *pieces, first, second = answered(Said("Voilà un été.", (call, ("load_skill", {}))))
    assert "".join(map(str, pieces)) == "Voilà un été."
    assert first == ToolCall(
        "call_0", "skills_run_script", '{"skill_name": "demo", "args": ["le chat", "\\u00e9t\\u00e9"]}'
    )
    assert second == ToolCall("call_1", "load_skill", "{}")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            Failed(401, "Incorrect API key"),
            r"answered 401: Incorrect API key\. It does not accept the key in \$TUTOR_KEY",
        ),
        (Failed(404, "no such model"), r"answered 404: no such model\. Check the model's name \('a-model', --model\)"),
        (Failed(429, "slow down"), r"answered 429: slow down\. .* Wait a little, then /retry"),
        (Failed(503, "overloaded"), r"answered 503: overloaded\. The fault is on its side"),
        (Said("Once", ending="cut"), r"broke off: peer closed .* What came so far is kept; /retry asks again"),
        (Said("Once", ending="garbage"), r"broke off: a piece of it cannot be read\."),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_failure_is_one_sentence_with_a_remedy(answer: Said | Failed, told: str) -> None:
    with pytest.raises(ModelUnavailableError, match=told) as caught:
        answered(answer)
    assert "\n" not in str(caught.value)


def test_an_error_never_shows_the_key_nor_what_a_terminal_obeys() -> None:
    with pytest.raises(ModelUnavailableError) as caught:
        answered(Failed(401, f"bad key {KEY} \x1b[31m sk-abcdefghijklmnopqrstuvwx"))
    assert KEY not in str(caught.value)
    assert "sk-abc" not in str(caught.value)
    assert "\\x1b[31m" in str(caught.value)


def test_nobody_there_is_said_with_the_address() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{nobody.getsockname()[1]}/v1"
        endpoint = Endpoint("a-model", address, KEY, "TUTOR_KEY")
        with pytest.raises(ModelUnavailableError, match=f"{address} cannot be reached .*--base-url"):
            list(endpoint.stream(QUESTION))
        endpoint.close()


def test_a_page_that_is_no_endpoint_is_said_to_be_none() -> None:
    import threading
    from functools import partial
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Page(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<html>Welcome</html>")

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.01))
        thread.start()
        endpoint = Endpoint("a-model", f"http://127.0.0.1:{server.server_address[1]}", KEY, "TUTOR_KEY")
        try:
            with pytest.raises(ModelUnavailableError, match="broke off"):
                list(endpoint.stream(QUESTION))
        finally:
            endpoint.close()
            server.shutdown()
            thread.join()
