"""What the launcher starts in place of a rank: it runs the program, and tells the launcher how that ended.

A script of Python's own modules alone, so that it is there at once: `rank.py SOCKET LOCAL_RANK NAMES COMMAND ...`. NAMES are variables, separated by commas, in which mpiexec may have said which process this is; where
none is set it is LOCAL_RANK. The program's output and errors go to the launcher by connections of their own, and nothing else does, so no other process can mix its words with them.

Note [The launcher's connections]
Each begins with a line: `LOCAL_RANK out`, `LOCAL_RANK err`, or `LOCAL_RANK says`. By the last one a line of JSON says the program's process number, and another one its exit code. A program that failed keeps its
stand-in until the launcher has closed the connection, since mpiexec ends all others as soon as one process has gone. The connection's end without that means that the launcher has gone: so does the program then.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux


def connect(path: str, local: int, what: str) -> socket.socket:
    """A connection to the launcher, which is told what it is for."""
    made = socket.socket(socket.AF_UNIX)
    made.connect(path)
    made.sendall(f"{local} {what}\n".encode())
    return made


def die_with_parent() -> None:
    """Let the system end this process when its parent has gone, where it can do that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


def environment(local: int) -> dict[str, str]:
    """The variables of the program: those of this process, and the numbers of its rank."""
    rank = local + int(os.environ["MINDTORCH_FIRST_RANK"])
    own = {"RANK": rank, "ROLE_RANK": rank, "LOCAL_RANK": local}
    if os.environ.get("MINDTORCH_VIRTUAL_LOCAL_RANK"):
        own["LOCAL_RANK"] = 0
    return os.environ | {name: str(value) for name, value in own.items()}


def main(path: str, local_rank: str, names: str, *command: str) -> int:
    """Run the command; its exit code as a shell has it."""
    said = [os.environ[name] for name in names.split(",") if name in os.environ]
    local = int(said[0] if said else local_rank)
    says = connect(path, local, "says")
    out, err = connect(path, local, "out"), connect(path, local, "err")
    variables = environment(local)
    child = subprocess.Popen(
        [part.replace("${local_rank}", str(local)) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=out.fileno(),
        stderr=err.fileno(),
        env=variables,
        close_fds=False,  # one of them is mpiexec's
        preexec_fn=die_with_parent,
    )
    out.close()
    err.close()
    says.sendall(json.dumps({"pid": child.pid}).encode() + b"\n")
    gone = threading.Event()

    def wait() -> None:
        try:
            while says.recv(1):
                pass
        except OSError:
            pass  # the launcher has gone, which is what is waited for
        gone.set()
        if child.poll() is None:
            child.kill()

    threading.Thread(target=wait, daemon=True).start()
    code = child.wait()
    try:
        says.sendall(json.dumps({"code": code}).encode() + b"\n")
    except OSError:
        pass  # nobody is left to be told
    else:
        if code:
            gone.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
