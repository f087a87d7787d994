"""`python -m bench.peers.play PEER fill COUNT | plan | work`: one part of a peer, in its own interpreter.

`fill` queues jobs that may run at once, `plan` reads from standard input when each of its jobs is due,
`work` works until it is stopped.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module


def main() -> None:
    name, what, *more = sys.argv[1:]
    peer = import_module(f"bench.peers.{name}")
    if what == "fill":
        peer.fill(int(more[0]))
    elif what == "plan":
        peer.plan(json.load(sys.stdin))
    else:
        peer.work()


if __name__ == "__main__":
    main()
