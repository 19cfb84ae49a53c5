"""Your own RDMA program. `make step` says what comes next, and judges what you have written.

It calls pyverbs, which has an object for each of C's: help("pyverbs.cmid.CMID"), help("pyverbs.mr.MR"). What pyverbs lacks, the
module more beside this file has: help("more"), in this folder. A shell that is to find pyverbs says `. ../target/tools/env` before.
Where waiting is to end, sleep in select.poll on more.descriptor(channel).
"""

import argparse
import sys

import more
from more import cm, ib  # Numbers with the names that they have in C: cm.RDMA_PS_TCP, ib.IBV_QPT_RC.
from pyverbs.cmid import CMID, AddrInfo, CMEvent, CMEventChannel, ConnParam
from pyverbs.cq import CQ, CompChannel
from pyverbs.mr import MR
from pyverbs.qp import QPCap, QPInitAttr


def server(args):
    """Runs when the program is called as `mine.py server`. It listens on the port args.port."""


def client(args):
    """Runs when it is called as `mine.py client -a ADDRESS`: args.address is the server's."""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("side", choices=["server", "client"])
    parser.add_argument("-a", "--address", default="0.0.0.0", help="the server's own, or the server to connect to")
    parser.add_argument("-p", "--port", default="7471")
    # What a side will write into the other's memory, the client from lesson 04 on, both in lesson 06: a text, or so many bytes.
    parser.add_argument("-s", "--text", default="my first RDMA WRITE")
    parser.add_argument("--len", type=int)
    # Lessons 06 and 07: write or read, and which side hangs up first.
    parser.add_argument("-m", "--mode", choices=["write", "read"], default="write")
    parser.add_argument("--closer", choices=["client", "server"], default="client")
    # Lesson 11: connections or datagrams, and how often a client of datagrams asks.
    parser.add_argument("--transport", choices=["rc", "ud"], default="rc")
    parser.add_argument("--requests", type=int, default=2)
    args = parser.parse_args()
    # What they give is the exit status: None and 0 are good.
    sys.exit(server(args) if args.side == "server" else client(args))


if __name__ == "__main__":
    main()
