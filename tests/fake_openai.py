"""A small OpenAI-compatible server on loopback that plays replies and keeps every raw request.

A real socket and real HTTP, so that a test sees exactly the bytes a provider would. Replies are
dictionaries, played in order, the last one repeated:

    {"text": str, "tools": [{"name", "args"}], "usage": {"input", "output"}, "delay_s": n,
     "status": 429 | 500 | …, "broken": "cut" | "silent" | "garbage", "no_usage": bool}

`broken` is about the stream: `cut` closes the connection in the middle, `silent` stops sending
until the client gives up, `garbage` sends a line that is not JSON.
"""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


class FakeOpenAI:
    """Use as a context manager; `url` is the base URL, `bodies` the raw request bodies in order."""

    def __init__(self, replies: list[dict[str, Any]]) -> None:
        self.replies = replies
        self.bodies: list[bytes] = []
        self.paths: list[str] = []
        self._lock = threading.Lock()
        self._released = threading.Event()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                number = fake._keep(self.path, body)
                reply = fake.replies[min(number, len(fake.replies) - 1)]
                try:
                    _answer(self, json.loads(body), reply, number, fake._released)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that hangs up is a case under test and not worth a traceback."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The request bodies as JSON."""
        return [json.loads(body) for body in self.bodies]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def _keep(self, path: str, body: bytes) -> int:
        with self._lock:
            self.bodies.append(body)
            self.paths.append(path)
            return len(self.bodies) - 1


def _answer(
    handler: BaseHTTPRequestHandler,
    request: dict[str, Any],
    reply: dict[str, Any],
    number: int,
    released: threading.Event,
) -> None:
    if reply.get("delay_s"):
        released.wait(reply["delay_s"])
    if reply.get("status", 200) != 200:
        error = {"error": {"message": "scripted", "type": "scripted", "code": reply["status"]}}
        _json(handler, reply["status"], error)
    elif request.get("stream"):
        _stream(handler, request, reply, number, released)
    else:
        _json(handler, 200, _whole(request, reply, number))


def _json(handler: BaseHTTPRequestHandler, status: int, value: dict[str, Any]) -> None:
    data = json.dumps(value).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def _tool_calls(reply: dict[str, Any], number: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{number}_{i}",
            "type": "function",
            "function": {"name": tool["name"], "arguments": json.dumps(tool["args"])},
        }
        for i, tool in enumerate(reply.get("tools", ()))
    ]


def _usage(reply: dict[str, Any]) -> dict[str, int]:
    spent = reply.get("usage", {"input": 100, "output": 10})
    return {
        "prompt_tokens": spent["input"],
        "completion_tokens": spent["output"],
        "total_tokens": spent["input"] + spent["output"],
    }


def _whole(request: dict[str, Any], reply: dict[str, Any], number: int) -> dict[str, Any]:
    calls = _tool_calls(reply, number)
    message: dict[str, Any] = {"role": "assistant", "content": reply.get("text", "")}
    if calls:
        message["tool_calls"] = calls
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request["model"],
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        ],
        "usage": _usage(reply),
    }


def _stream(
    handler: BaseHTTPRequestHandler,
    request: dict[str, Any],
    reply: dict[str, Any],
    number: int,
    released: threading.Event,
) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    broken = reply.get("broken", "")
    text = reply.get("text", "")
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text[i : i + 7]} for i in range(0, len(text), 7)]
    for index, call in enumerate(_tool_calls(reply, number)):
        arguments = call["function"]["arguments"]
        half = len(arguments) // 2
        begin = {**call["function"], "arguments": arguments[:half]}
        deltas.append({"tool_calls": [{**call, "index": index, "function": begin}]})
        rest = {"index": index, "function": {"arguments": arguments[half:]}}
        deltas.append({"tool_calls": [rest]})
    for delta in deltas:
        _event(handler, request, number, [{"index": 0, "delta": delta, "finish_reason": None}])
    if broken == "cut":
        handler.close_connection = True
        return
    if broken == "silent":
        released.wait(60)
        handler.close_connection = True
        return
    if broken == "garbage":
        _chunk(handler, b"data: {not json\n\n")
    if broken != "unfinished":
        reason = "tool_calls" if reply.get("tools") else "stop"
        _event(handler, request, number, [{"index": 0, "delta": {}, "finish_reason": reason}])
        wanted = request.get("stream_options", {}).get("include_usage")
        if wanted and not reply.get("no_usage"):
            _event(handler, request, number, [], usage=_usage(reply))
    _chunk(handler, b"data: [DONE]\n\n")
    handler.wfile.write(b"0\r\n\r\n")


def _event(
    handler: BaseHTTPRequestHandler,
    request: dict[str, Any],
    number: int,
    choices: list[dict[str, Any]],
    **more: object,
) -> None:
    event = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": request["model"],
        "choices": choices,
        **more,
    }
    _chunk(handler, f"data: {json.dumps(event)}\n\n".encode())


def _chunk(handler: BaseHTTPRequestHandler, data: bytes) -> None:
    handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    handler.wfile.flush()
