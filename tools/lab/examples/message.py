#!/usr/bin/env python3
"""The same as message.c, with pyverbs: `message.py server`, `message.py client HOST TEXT`. Each talks to the other's kind."""
import sys

import pyverbs.cm_enums as cm
from pyverbs.cmid import CMID, AddrInfo
from pyverbs.enums import IBV_QPT_RC
from pyverbs.qp import QPCap, QPInitAttr

LENGTH = 64
QUEUES = QPInitAttr(qp_type=IBV_QPT_RC, cap=QPCap(max_send_wr=1, max_recv_wr=1), sq_sig_all=1)


def serve():
    address = AddrInfo(src="10.47.91.1", src_service="7471", port_space=cm.RDMA_PS_TCP, flags=cm.RAI_PASSIVE)
    listener = CMID(creator=address, qp_init_attr=QUEUES)
    listener.listen()
    connection = listener.get_request()
    memory = connection.reg_msgs(LENGTH)
    connection.post_recv(memory)
    connection.accept()
    connection.get_recv_comp()
    print("received:", memory.read(LENGTH, 0).rstrip(b"\0").decode())


def send(host, text):
    address = AddrInfo(dst=host, dst_service="7471", port_space=cm.RDMA_PS_TCP)
    connection = CMID(creator=address, qp_init_attr=QUEUES)
    memory = connection.reg_msgs(LENGTH)
    memory.write(text.encode().ljust(LENGTH, b"\0"), LENGTH)
    connection.connect()
    connection.post_send(memory)
    connection.get_send_comp()
    print("sent:", text)


if sys.argv[1:] == ["server"]:
    serve()
elif len(sys.argv) == 4:
    send(*sys.argv[2:])
else:
    sys.exit("usage: message.py server | message.py client HOST TEXT")
