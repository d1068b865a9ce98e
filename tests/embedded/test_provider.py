"""A real model through litellm, against a server on loopback that keeps every byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.fake_openai import FakeOpenAI

DRIVER = """
import json, os, sys
from host_adapters.embedded.models import ModelError
from host_adapters.embedded.provider import ProviderModel
from host_adapters.embedded.tools import SCHEMAS
messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}]
for name, variable in json.loads(sys.argv[1]):
    pieces = []
    os.environ.pop("OPENAI_BASE_URL", None)
    os.environ.pop("OPENAI_API_BASE", None)
    os.environ[variable] = sys.argv[2]
    model = ProviderModel(name, timeout_s=1.0)
    try:
        reply = model.complete(messages, SCHEMAS, pieces.append)
        calls = [[t.id, t.name, t.arguments] for t in reply.tools]
        said = {"text": reply.text, "pieces": pieces, "tools": calls,
                "usage": [reply.input_tokens, reply.output_tokens]}
    except ModelError as error:
        said = {"error": str(error)}
    print(json.dumps(said))
"""


def environment(url: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if "KEY" not in k and "OPENAI" not in k}
    return kept | {"OPENAI_BASE_URL": url}


def drive(fake: FakeOpenAI, calls: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """One process, because litellm takes seconds to import; each call a (model, variable)."""
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, json.dumps(calls), fake.url],
        env=environment(fake.url),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_text_tools_usage_and_every_way_to_fail():
    replies = [
        {
            "text": "hello world, how are you",
            "tools": [
                {"name": "read_file", "args": {"path": "ä b"}},
                {"name": "search", "args": {"pattern": "x", "path": "."}},
            ],
            "usage": {"input": 123, "output": 45},
        },
        {"text": "x", "no_usage": True},
        {"status": 429},
        {"status": 500},
        {"status": 401},
        {"status": 404},
        {"text": "abc def", "broken": "cut"},
        {"text": "abc def", "broken": "silent"},
        {"text": "abc def", "broken": "garbage"},
        {"text": "abc def", "broken": "unfinished"},
        {"delay_s": 20},
    ]
    with FakeOpenAI(replies) as fake:
        calls = [("tiny-local", "OPENAI_BASE_URL")] * len(replies)
        others = [("openai/some-model", "OPENAI_API_BASE"), ("no-such-model", "SOMETHING_ELSE")]
        fake.replies.append({"text": "yes"})
        answers = drive(fake, calls + others)
        # One request a call: neither litellm nor the client repeats anything on its own.
        assert len(fake.bodies) == len(calls) + 1
        assert len(set(fake.bodies[:-1])) == 1, "the same conversation must give the same bytes"
        body, other = fake.requests[0], fake.requests[-1]
    assert (answers[-2]["text"], other["model"]) == ("yes", "some-model")
    assert "OPENAI_BASE_URL" in answers.pop()["error"]
    answers.pop()
    first = answers[0]
    assert first["text"] == "hello world, how are you" == "".join(first["pieces"])
    assert len(first["pieces"]) > 1
    assert [t[:2] for t in first["tools"]] == [["call_0_0", "read_file"], ["call_0_1", "search"]]
    assert json.loads(first["tools"][0][2]) == {"path": "ä b"}
    assert first["usage"] == [123, 45]
    assert all(n > 0 for n in answers[1]["usage"])
    assert "429" in answers[2]["error"] and "500" in answers[3]["error"]
    assert "key" in answers[4]["error"] and "model" in answers[5]["error"]
    for answer in answers[2:]:
        assert len(answer["error"]) < 200 and "\n" not in answer["error"]
        assert "litellm" not in answer["error"]
    assert (body["model"], body["stream"]) == ("tiny-local", True)
    assert body["stream_options"] == {"include_usage": True}
    assert body["tools"][0]["function"]["name"] == "read_file"
    assert set(body) == {"model", "messages", "tools", "stream", "stream_options"}


def test_the_raw_request_is_the_same_without_rage_and_with_rage_inactive(workspace: Path):
    """F001, law 1: the bytes on the wire, the plugin absent and installed but idle."""
    script = [
        {"text": "look", "tools": [{"name": "read_file", "args": {"path": "a.txt"}}]},
        {"text": "one and two"},
        {"text": "bye"},
    ]
    bodies = []
    for options in (["--without-rage"], []):
        with FakeOpenAI(script) as fake:
            done = subprocess.run(
                [sys.executable, "-m", "rage_plugin", "chat", "--model", "tiny-local",
                 "--workspace", str(workspace), *options],
                input="what is in a.txt?\nrage is a feeling\n",
                env=environment(fake.url),
                capture_output=True,
                text=True,
                timeout=90,
                check=True,
            )  # fmt: skip
            assert done.stdout.endswith("one and two\nbye\n")
            bodies.append(fake.bodies)
    assert len(bodies[0]) == 3
    assert bodies[0] == bodies[1]
