"""Whose key is good for what, keys that are changed while they are used, and the files beside them
as daemons find them at their start.

Covers: auth/credential.
"""

import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from understudy.auth.credential import CredentialError, Signer, Verifier
from understudy.auth.handshake import (
    AuthError,
    VersionError,
    client_hello,
    read_hello,
    server_challenge,
)
from understudy.auth.keys import Change, Keys, check_folder, create_keys


@pytest.fixture
def folder(tmp_path):
    create_keys(tmp_path / "keys", ["controller", "agent", "noded0", "noded1"])
    return tmp_path / "keys"


def shake(client, server, *, name=None, meant="", is_daemon=True):
    """The secrets of both ends of a connection; the client says that it is `name`."""
    hello = client_hello(name or client.name, 0, 0, is_daemon=is_daemon)
    challenge, secret, _ = server.answered(hello, read_hello(hello)[0] if is_daemon else "agent")
    return client.secret(hello, challenge, meant)[0], secret


def test_two_that_know_each_others_keys_share_a_secret_that_is_new_each_time(folder):
    noded, controller = Keys("noded0", folder), Keys("controller", folder)
    first, second = (shake(noded, controller, meant="controller") for _ in range(2))
    assert first[0] == first[1]
    assert second[0] == second[1]
    assert first[0] != second[0]


@pytest.mark.parametrize("claimed", ["controller", "noded1"])
def test_a_stolen_key_of_a_node_daemon_speaks_in_no_other_name(folder, claimed):
    with pytest.raises(AuthError, match="counts on another key of noded0"):
        shake(Keys("noded0", folder), Keys("noded1", folder), name=claimed)


def test_a_stolen_key_of_a_node_daemon_vouches_for_no_user(folder):
    with pytest.raises(AuthError, match="counts on another key of noded0"):
        shake(Keys("noded0", folder), Keys("controller", folder), is_daemon=False)


def test_a_stolen_key_of_a_node_daemon_does_not_answer_as_the_controller(folder):
    class Thief(Keys):
        """Has noded1's private key, and says that it is the controller."""

        def answered(self, hello, client):
            self.refresh()
            mine, theirs = self._own().public[:32], self._public["noded0"][-1][:32]
            return server_challenge("controller", mine, theirs), b"", theirs

    with pytest.raises(AuthError, match="'controller' has no such key"):
        shake(Keys("noded0", folder), Thief("noded1", folder), meant="controller")


def test_who_listens_in_anothers_place_is_not_taken_for_it(folder):
    with pytest.raises(AuthError, match="'noded1' answers in place of controller"):
        shake(Keys("noded0", folder), Keys("noded1", folder), meant="controller")


def test_who_is_not_listed_is_nobody(folder):
    with pytest.raises(AuthError, match="'noded7' has no key in"):
        shake(Keys("noded0", folder), Keys("controller", folder), name="noded7")


def test_a_stolen_key_of_a_node_daemon_signs_neither_jobs_nor_orders(folder):
    verifier, thief = Verifier(Keys("noded1", folder)), Signer(Keys("noded0", folder))
    with pytest.raises(CredentialError, match="not signed by this cluster's controller"):
        verifier.verify(thief.sign(7, 0, "n1", 1000, 500))
    with pytest.raises(CredentialError, match="not signed by this cluster's controller"):
        verifier.verify_step(thief.sign_step(7, 0, 1, "n1", 1000, 1000, 500))
    assert not verifier.is_order(thief.order(lambda: 500, b"inner"), b"inner", 500)


def test_an_order_is_good_for_its_message_and_for_a_while(folder):
    order = Signer(Keys("controller", folder)).order(lambda: 500, b"inner")
    verifier = Verifier(Keys("noded0", folder))
    assert verifier.is_order(order, b"inner", 620)
    assert not verifier.is_order(order, b"other", 500)
    assert not verifier.is_order(order, b"inner", 621)
    assert not verifier.is_order(order[:-1] + b"\xff", b"inner", 500)
    assert not verifier.is_order(b"", b"inner", 500)


def test_a_key_is_changed_without_a_moment_in_which_nobody_is_understood(folder):
    noded, controller = Keys("noded0", folder), Keys("controller", folder)
    old = shake(noded, controller)
    early = Signer(controller).sign(7, 0, "n1", 1000, 500)
    change = Change(folder, ["controller", "noded0"])
    change.begin()
    during = shake(noded, controller)
    assert during[0] == during[1]
    verifier = Verifier(Keys("noded1", folder))
    assert verifier.verify(early).job_id == 7
    late = Signer(controller).sign(8, 0, "n1", 1000, 500)
    change.finish()
    after = shake(noded, controller)
    assert after[0] == after[1]
    assert old != after
    assert verifier.verify(late).job_id == 8


def test_keys_of_several_are_changed_at_a_time(folder):
    first, second = Change(folder, ["controller", "noded0"]), Change(folder, ["noded0", "noded1"])
    first.begin()
    second.begin()
    noded, controller = Keys("noded0", folder), Keys("controller", folder)
    assert shake(noded, controller)
    first.finish()
    after = shake(noded, controller)
    second.finish()
    assert shake(noded, controller)[0] != after[0]
    assert shake(Keys("noded1", folder), controller)
    assert [len((folder / name).read_bytes()) for name in ("controller", "noded0")] == [32, 32]


def test_a_change_that_another_has_overtaken_takes_no_key_away(folder):
    first, second = Change(folder, ["noded0"]), Change(folder, ["noded0"])
    first.begin()
    second.begin()
    second.finish()
    first.finish()
    assert shake(Keys("noded0", folder), Keys("controller", folder))


def test_who_changes_keys_waits_for_who_writes_there(folder):
    changes = [Change(folder, [name]) for name in ("noded0", "noded1", "agent") * 5]

    def change(each):
        each.begin()
        each.finish()

    with ThreadPoolExecutor(len(changes)) as pool:
        list(pool.map(change, changes))
    assert shake(Keys("noded0", folder), Keys("noded1", folder))
    assert shake(Keys("agent", folder), Keys("noded1", folder))


def test_what_was_signed_with_a_former_key_is_known_again_and_no_more(folder):
    controller, verifier = Keys("controller", folder), Verifier(Keys("noded1", folder))
    early = Signer(controller).sign(7, 0, "n1", 1000, 500)
    order = Signer(controller).order(lambda: 500, b"inner")
    change = Change(folder, ["controller"])
    change.begin()
    change.finish()
    with pytest.raises(CredentialError):
        verifier.verify(early)
    assert not verifier.is_order(order, b"inner", 500)
    assert verifier.verify(early, or_formerly=True).job_id == 7


def test_a_key_that_was_stolen_and_changed_is_good_for_nothing(folder, tmp_path):
    thief = tmp_path / "thief"
    thief.mkdir()
    (thief / "noded0").write_bytes((folder / "noded0").read_bytes())
    (thief / "noded0").chmod(0o600)
    (thief / "public").symlink_to(folder / "public")
    stolen, controller = Keys("noded0", thief), Keys("controller", folder)
    assert shake(stolen, controller)
    _, _, key = controller.answered(b"hello", "noded0")
    assert controller.knows("noded0", key)
    change = Change(folder, ["noded0"])
    change.begin()
    change.finish()
    with pytest.raises(AuthError, match="counts on another key of noded0"):
        shake(stolen, controller)
    assert not controller.knows("noded0", key)


def test_only_daemons_that_have_keys_change_them(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(AuthError, match="'noded9' has no key"):
        Change(folder, ["noded0", "noded9"]).begin()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_keys_in_a_folder_that_everybody_may_write_are_not_made_good(folder):
    folder.chmod(0o777)
    with pytest.raises(AuthError, match="keys may be written by everybody: chmod o-w it"):
        create_keys(folder, ["controller"])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o777


def test_private_keys_are_their_owners_alone(folder):
    assert {stat.S_IMODE((folder / name).stat().st_mode) for name in ("agent", "noded0")} == {0o600}
    (folder / "noded0").chmod(0o640)
    with pytest.raises(AuthError, match="may be read by others: chmod 600 it"):
        Keys("noded0", folder).refresh()
    (folder / "noded0").chmod(0o600)
    (folder / "public").chmod(0o664)
    with pytest.raises(AuthError, match="may be written by others: chmod 644 it"):
        Keys("noded0", folder).refresh()


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("noded0", b"short", "has 5 bytes, expected 32 or 64"),
        ("public", b"noded0 " + b"ab" * 64 + b"\nnoded1", ":2: not a name and a public key"),
        ("public", b"noded0 " + b"zz" * 64, ":1: not a name and a public key"),
        ("public", b"\xff\n", ":1: not a name and a public key"),
    ],
)
def test_what_is_no_key_is_named(folder, name, content, complaint):
    (folder / name).write_bytes(content)
    with pytest.raises(AuthError, match=complaint):
        Keys("noded0", folder).refresh()


def test_a_key_that_is_gone_is_named(folder):
    (folder / "noded0").unlink()
    with pytest.raises(AuthError, match=r"noded0: No such file"):
        Keys("noded0", folder).refresh()


def test_a_private_key_that_is_not_the_listed_one_is_named(folder, tmp_path):
    create_keys(tmp_path / "others", ["noded0"])
    (folder / "noded0").write_bytes((tmp_path / "others" / "noded0").read_bytes())
    with pytest.raises(AuthError, match="not the private key"):
        Keys("noded0", folder).sign(b"text")


def test_another_version_is_told_so_by_both_ends(folder):
    with pytest.raises(VersionError, match="protocol version 'understudy/1', expected"):
        read_hello(client_hello("a", 0, 0, is_daemon=True).replace(b"/2", b"/1"))
    with pytest.raises(VersionError, match="protocol version 'understudy/1', expected"):
        Keys("noded0", folder).secret(b"hello", server_challenge("a").replace(b"/2", b"/1"))


@pytest.mark.parametrize("name", [".", "cluster.json", "slurm.conf", "state", "keys"])
def test_a_run_directory_that_everybody_may_write_is_refused(tmp_path, name):
    for file in ("cluster.json", "slurm.conf"):
        (tmp_path / file).write_text("")
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "keys").mkdir()
    check_folder(tmp_path)
    (tmp_path / name).chmod(0o777)
    with pytest.raises(AuthError, match="may be written by everybody: chmod o-w it"):
        check_folder(tmp_path)


@pytest.mark.parametrize("name", ["state", "accounting"])
def test_what_users_trust_daemons_with_may_not_be_read_by_everybody(tmp_path, name):
    (tmp_path / name).mkdir(mode=0o700)
    check_folder(tmp_path)
    (tmp_path / name).chmod(0o755)
    with pytest.raises(AuthError, match="may be read by everybody: chmod 700 it"):
        check_folder(tmp_path)
