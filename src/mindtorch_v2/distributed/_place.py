"""What mpiexec starts in place of a rank that runs already (Note [Places of mpiexec] in `_places.py`): it hands its connection to the process manager over, and stays until the rank has started MPI.

A script of Python's own modules alone: `_place.py SOCKET ...`, with the sockets of all ranks.
"""

import json
import os
import socket
import sys


def main(*paths: str) -> None:
    """Find the rank of this place and hand it what mpiexec has given."""
    said = {name: value for name, value in os.environ.items() if name.startswith(("PMI", "MPI_LOCAL"))}
    number = int(said.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")))
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(paths[number])
        if "PMI_FD" in said:
            socket.send_fds(connection, [json.dumps(said).encode()], [int(said["PMI_FD"])])
        else:
            connection.sendall(b"{}")
        while connection.recv(1):
            pass


if __name__ == "__main__":
    main(*sys.argv[1:])
