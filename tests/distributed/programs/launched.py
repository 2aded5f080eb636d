"""Run by several ranks: says what the launcher has told it, and fails in the way that the arguments say: HOW RANK [FILE]."""

import os
import sys
import time

import torch
import torch.distributed as dist


def main(how="well", who="-1", *rest):
    dist.init_process_group("gloo")
    rank, mine = dist.get_rank(), dist.get_rank() == int(who)
    total = torch.ones(2) * rank
    dist.all_reduce(total)
    names = ("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT")
    print(type(dist.group.WORLD.engine).__name__, *(os.environ[name] for name in names), total[0].item(), *rest)
    print("progress 1\rprogress 2", flush=True)
    print(f"runs since {time.monotonic()}", flush=True)
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    if mine and (how != "once" or not attempt):
        if how == "raise":
            try:
                {}["missing"]
            except KeyError as error:
                raise ValueError("this rank has had enough") from error
        if how == "exit":
            sys.exit(3)
        if how in ("kill", "once"):
            os.kill(os.getpid(), 9)
    if how == "deaf":
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        dist.barrier()
        if mine:
            sys.exit(5)
        time.sleep(600)
    if how == "sleep":
        time.sleep(600)
    if how != "well":
        dist.all_reduce(total)  # those that are left wait for the one that failed
    print("done", rank, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
