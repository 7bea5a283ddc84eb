"""The credential agent at its socket: users do not take it from each other.

Covers: auth/refusals.
"""

import asyncio
import os

import msgpack
from key_harness import keys_of

from understudy.auth import refusals
from understudy.auth.agent import CredentialAgent
from understudy.auth.handshake import client_hello, frame


async def question(path, user_id):
    """The agent's answer to a hello as this user, and the secret that it should be."""
    hello = client_hello("sbatch", user_id, os.getgid(), is_daemon=False)
    challenge, secret, _ = keys_of("controller").answered(hello, "agent")
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(frame(msgpack.packb([hello, challenge])))
    answer = await reader.read()
    writer.close()
    return answer, secret


async def test_a_user_gets_the_secret_of_his_own_connection_and_of_no_others(tmp_path):
    agent = CredentialAgent(keys_of("agent"))
    await agent.listen(tmp_path / "agent.sock")
    answer, secret = await question(tmp_path / "agent.sock", os.getuid())
    assert answer == frame(secret)
    answer, _ = await question(tmp_path / "agent.sock", os.getuid() + 1)
    assert answer == frame(b"")
    agent.close()


async def test_who_has_many_questions_open_has_no_more(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(refusals, "MOST_UNPROVEN", 3)
    agent = CredentialAgent(keys_of("agent"))
    await agent.listen(tmp_path / "agent.sock")
    opened = [await asyncio.open_unix_connection(tmp_path / "agent.sock") for _ in range(3)]
    reader, writer = await asyncio.open_unix_connection(tmp_path / "agent.sock")
    assert await reader.read() == b""
    assert "others have not said who they are" in caplog.text
    for _, other in [*opened, (reader, writer)]:
        other.close()
    answer = b""
    while not answer:  # until the agent has seen that they are closed
        answer, secret = await question(tmp_path / "agent.sock", os.getuid())
    assert answer == frame(secret)
    agent.close()
