"""The PMIx library (libpmix, 4 or later), as far as a server of one node's tasks needs it.

Place: under `pmixd.py`, in a process of its own: the library has threads, which call back here.
Follows: the PMIx standard, version 4.
"""

from __future__ import annotations

import ctypes
import os
import re
from ctypes import (
    CFUNCTYPE,
    POINTER,
    byref,
    c_char,
    c_char_p,
    c_int,
    c_size_t,
    c_uint16,
    c_uint32,
    c_void_p,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

NAME = "libpmix.so.2"
WILDCARD, UNDEFINED = 0xFFFFFFFE, 0xFFFFFFFF
SUCCESS, NOT_SUPPORTED, DONE_AT_ONCE = 0, -47, -157
BOOL, STRING, UINT16, UINT32, DATA_ARRAY, RANK, REGEX = 1, 3, 13, 14, 39, 40, 49

# The attributes that a job has in Slurm: name -> (key, type).
ATTRIBUTES = {
    "namespace": ("pmix.srv.nspace", STRING),
    "server_rank": ("pmix.srv.rank", RANK),
    "server_folder": ("pmix.srvr.tmpdir", STRING),
    "system_folder": ("pmix.sys.tmpdir", STRING),
    "hostname": ("pmix.hname", STRING),
    "job": ("pmix.jobid", STRING),
    "size": ("pmix.job.size", UINT32),
    "universe": ("pmix.univ.size", UINT32),
    "most": ("pmix.max.size", UINT32),
    "nodes": ("pmix.num.nodes", UINT32),
    "node_map": ("pmix.nmap", REGEX),
    "task_map": ("pmix.pmap", REGEX),
    "node": ("pmix.nodeid", UINT32),
    "node_size": ("pmix.node.size", UINT32),
    "local_size": ("pmix.local.size", UINT32),
    "local_peers": ("pmix.lpeers", STRING),
    "local_leader": ("pmix.lldr", RANK),
    "application": ("pmix.appnum", UINT32),
    "application_size": ("pmix.app.size", UINT32),
    "application_leader": ("pmix.aldr", RANK),
    "applications": ("pmix.job.napps", UINT32),
    "offset": ("pmix.offset", RANK),
    "is_spawned": ("pmix.spawned", BOOL),
    "folder": ("pmix.tmpdir", STRING),
    "job_folder": ("pmix.nsdir", STRING),
    "task_folder": ("pmix.pdir", STRING),
    "is_cleaned": ("pmix.tdir.rmclean", BOOL),
    "task": ("pmix.pdata", DATA_ARRAY),
    "rank": ("pmix.rank", RANK),
    "global_rank": ("pmix.grank", RANK),
    "application_rank": ("pmix.apprank", RANK),
    "local_rank": ("pmix.lrank", UINT16),
    "node_rank": ("pmix.nrank", UINT16),
}
_SCALARS: dict[int, Any] = {BOOL: ctypes.c_bool, UINT16: c_uint16, UINT32: c_uint32, RANK: c_uint32}


class Proc(ctypes.Structure):
    """A task: its namespace and number."""

    _fields_ = (("namespace", c_char * 256), ("rank", c_uint32))


class _Array(ctypes.Structure):
    _fields_ = (("type", c_uint16), ("size", c_size_t), ("array", c_void_p))


_Release = CFUNCTYPE(None, c_void_p)
_Modex = CFUNCTYPE(None, c_int, c_char_p, c_size_t, c_void_p, _Release, c_void_p)
_Client = CFUNCTYPE(c_int, POINTER(Proc), c_void_p, c_void_p, c_void_p)
_Abort = CFUNCTYPE(
    c_int, POINTER(Proc), c_void_p, c_int, c_char_p, c_void_p, c_size_t, c_void_p, c_void_p
)
_Fence = CFUNCTYPE(
    c_int, POINTER(Proc), c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p
)
_DirectModex = CFUNCTYPE(c_int, POINTER(Proc), c_void_p, c_size_t, c_void_p, c_void_p)
_Response = CFUNCTYPE(None, c_int, c_void_p, c_size_t, c_void_p)


class _Module(ctypes.Structure):
    # What is not named is not supported; later versions of the library ask for more.
    _fields_ = (
        ("connected", _Client),
        ("finalized", _Client),
        ("abort", _Abort),
        ("fence", _Fence),
        ("direct_modex", _DirectModex),
        ("further", c_void_p * 59),
    )


class LibraryError(Exception):
    """The library is not there, or has said no."""


def load() -> Any:
    """The library.

    Raises:
        LibraryError: it is not there, or too old.
    """
    try:
        found = ctypes.CDLL(NAME)
        for name in (
            "PMIx_Get_version",
            "PMIx_Info_list_start",
            "PMIx_Info_list_add",
            "PMIx_Info_list_convert",
            "PMIx_generate_regex",
            "PMIx_generate_ppn",
        ):
            getattr(found, name)
    except (OSError, AttributeError) as error:
        raise LibraryError(str(error)) from error
    found.PMIx_Info_list_start.restype = c_void_p
    found.PMIx_Error_string.restype = c_char_p
    return found


def version() -> int:
    """The library's.

    Raises:
        LibraryError: it is not there, or too old.
    """
    found = load().PMIx_Get_version
    found.restype = c_char_p
    text: str = found().decode()  # OpenPMIx 4.2.2, ...
    return int(re.search(r"\d+", text)[0])  # type: ignore[index]


class Server:
    """The library as the server of one node. The functions are called by the library's thread."""

    def __init__(self, abort: Callable[[int], None]) -> None:
        self._library = load()
        self._abort = abort
        self.connected: set[int] = set()  # tasks that have begun, and not said good-bye
        self._namespace = b""
        self._kept: dict[int, object] = {}  # what the library still reads, or calls
        self._number = 0
        self._release = _Release(self._released)
        self._module = _Module(
            _Client(self._on_connected),
            _Client(self._on_finalized),
            _Abort(self._on_abort),
            _Fence(self._on_fence),
            _DirectModex(self._on_ask),
        )

    def begin(
        self,
        about: list[tuple[str, object]],
        fence: Callable[[list[int] | None, bytes, Callable[[int, bytes], None]], None],
        ask: Callable[[int, Callable[[int, bytes], None]], None],
    ) -> None:
        """Begin to listen.

        Raises:
            LibraryError: it cannot.
        """
        self._fence, self._ask = fence, ask
        infos = self._infos(about)
        self._check(
            self._library.PMIx_server_init(
                byref(self._module), c_void_p(infos.array), c_size_t(infos.size)
            ),
            "PMIx_server_init",
        )

    def register(self, namespace: str, local: list[int], about: list[tuple[str, object]]) -> None:
        """Tell of the job, and of its tasks on this node, who are this process's user."""
        self._namespace = namespace.encode()
        infos = self._infos(about)
        call = self._library.PMIx_server_register_nspace
        self._check(
            call(
                self._namespace,
                c_int(len(local)),
                c_void_p(infos.array),
                c_size_t(infos.size),
                None,
                None,
            ),
            "PMIx_server_register_nspace",
        )
        for rank in local:
            call = self._library.PMIx_server_register_client
            self._check(
                call(
                    byref(Proc(self._namespace, rank)), os.getuid(), os.getgid(), None, None, None
                ),
                "PMIx_server_register_client",
            )

    def environment(self, rank: int) -> list[str]:
        """What the task's environment is to say."""
        variables = POINTER(c_char_p)()
        self._check(
            self._library.PMIx_server_setup_fork(
                byref(Proc(self._namespace, rank)), byref(variables)
            ),
            "PMIx_server_setup_fork",
        )
        found: list[str] = []
        while variables and (entry := variables[len(found)]) is not None:
            found.append(entry.decode())
        return found

    def look_up(self, rank: int, then: Callable[[int, bytes], None]) -> None:
        """What a task of this node has put, as soon as it has."""
        number = self._keep(None)

        def answer(status: int, data: int | None, size: int, _about: int | None) -> None:
            self._kept.pop(number)
            then(status, ctypes.string_at(data, size) if data else b"")

        response = self._kept[number] = _Response(answer)
        status = self._library.PMIx_server_dmodex_request(
            byref(Proc(self._namespace, rank)), response, None
        )
        if status != SUCCESS and self._kept.pop(number, None) is not None:
            then(status, b"")

    def maps_of(self, names: list[str], layout: list[list[int]]) -> tuple[object, object]:
        """Which nodes there are, and which tasks they have, as the library writes it."""
        nodes, tasks = c_void_p(), c_void_p()
        self._check(
            self._library.PMIx_generate_regex(",".join(names).encode(), byref(nodes)),
            "PMIx_generate_regex",
        )
        ranks = ";".join(",".join(map(str, each)) for each in layout)
        self._check(
            self._library.PMIx_generate_ppn(ranks.encode(), byref(tasks)), "PMIx_generate_ppn"
        )
        return nodes, tasks

    # --- called by the library --------------------------------------------------------------------

    def _on_connected(self, proc: Any, _object: Any, _call: Any, _data: Any) -> int:
        self.connected.add(proc[0].rank)
        return DONE_AT_ONCE

    def _on_finalized(self, proc: Any, _object: Any, _call: Any, _data: Any) -> int:
        self.connected.discard(proc[0].rank)
        return DONE_AT_ONCE

    def _on_abort(
        self,
        proc: Any,
        _object: Any,
        status: int,
        _text: Any,
        _procs: Any,
        _count: int,
        _call: Any,
        _data: Any,
    ) -> int:
        self.connected.discard(proc[0].rank)
        self._abort(status)
        return DONE_AT_ONCE

    def _on_fence(
        self,
        procs: Any,
        count: int,
        _infos: Any,
        _number: int,
        data: int | None,
        size: int,
        call: int,
        about: int | None,
    ) -> int:
        ranks = [procs[each].rank for each in range(count)]
        if any(procs[each].namespace != self._namespace for each in range(count)):
            return NOT_SUPPORTED
        put = ctypes.string_at(data, size) if data else b""
        self._fence(None if WILDCARD in ranks else ranks, put, self._answer(call, about))
        return SUCCESS

    def _on_ask(self, proc: Any, _infos: Any, _number: int, call: int, about: int | None) -> int:
        if proc[0].namespace != self._namespace:
            return NOT_SUPPORTED
        self._ask(proc[0].rank, self._answer(call, about))
        return SUCCESS

    def _answer(self, call: int, about: int | None) -> Callable[[int, bytes], None]:
        def answer(status: int, data: bytes) -> None:
            _Modex(call)(status, data, len(data), about, self._release, self._keep(data))

        return answer

    # --- values -----------------------------------------------------------------------------------

    def _keep(self, what: object) -> int:
        self._number += 1
        self._kept[self._number] = what
        return self._number

    def _released(self, number: int) -> None:
        self._kept.pop(number, None)

    def _infos(self, about: Iterable[tuple[str, object]]) -> _Array:
        """A list of attributes as the library has them."""
        values = c_void_p(self._library.PMIx_Info_list_start())
        for name, value in about:
            key, kind = ATTRIBUTES[name]
            if kind == DATA_ARRAY:
                given: Any = byref(self._infos(value))  # type: ignore[arg-type]
            elif kind == STRING:
                given = c_char_p(str(value).encode())
            elif kind == REGEX:
                given = value
            else:
                given = byref(_SCALARS[kind](value))
            self._check(
                self._library.PMIx_Info_list_add(values, key.encode(), given, c_uint16(kind)), name
            )
        found = _Array()
        self._check(
            self._library.PMIx_Info_list_convert(values, byref(found)), "PMIx_Info_list_convert"
        )
        return found

    def _check(self, status: int, what: str) -> None:
        if status not in (SUCCESS, DONE_AT_ONCE):
            raise LibraryError(f"{what}: {self._library.PMIx_Error_string(c_int(status)).decode()}")
