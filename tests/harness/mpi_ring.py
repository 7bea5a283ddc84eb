"""A program of several tasks that talk by Open MPI: a token goes round, and all numbers are summed
up. `abort`, `leave`: what task 1 does instead.
"""

import ctypes
import os
import sys

LIBRARY = "libmpi.so.40"


def main() -> None:
    mpi = ctypes.CDLL(LIBRARY, ctypes.RTLD_GLOBAL)
    world, number, total = (
        ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))
        for name in ("ompi_mpi_comm_world", "ompi_mpi_int", "ompi_mpi_op_sum")
    )
    mpi.MPI_Init(None, None)
    rank, size, token, summed = (ctypes.c_int() for _ in range(4))
    mpi.MPI_Comm_rank(world, ctypes.byref(rank))
    mpi.MPI_Comm_size(world, ctypes.byref(size))
    if rank.value == 1 and "abort" in sys.argv:
        mpi.MPI_Abort(world, 3)
    if rank.value == 1 and "leave" in sys.argv:
        os._exit(0)
    before, after = (rank.value - 1) % size.value, (rank.value + 1) % size.value
    if rank.value:
        mpi.MPI_Recv(ctypes.byref(token), 1, number, before, 0, world, None)
    token.value += 1
    mpi.MPI_Send(ctypes.byref(token), 1, number, after, 0, world)
    if not rank.value:
        mpi.MPI_Recv(ctypes.byref(token), 1, number, before, 0, world, None)
    mpi.MPI_Allreduce(ctypes.byref(rank), ctypes.byref(summed), 1, number, total, world)
    print(
        f"{rank.value} of {size.value} on {os.environ['SLURMD_NODENAME']}: {token.value} "
        f"{summed.value}",
        flush=True,
    )
    mpi.MPI_Finalize()


if __name__ == "__main__":
    main()
