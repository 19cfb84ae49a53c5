#!/usr/bin/env python3
"""Lesson 11 in Python: datagrams, and what makes them safe: numbers, a time-out, asking again, carrying out once.

    datagrams.py server [-a ADDR]               datagrams.py client -a ADDR [--requests N]

One client is served; the lesson's own server serves many with one queue pair. The stages stand in the order in which
the lesson's steps add them. What pyverbs keeps to itself, more.py has.
"""
import argparse
import select
import socket
import struct
import sys
import time
from collections import deque

try:
    from pyverbs.addr import AH
    from pyverbs.cmid import CMID, AddrInfo, CMEvent, CMEventChannel, ConnParam, UDParam
    from pyverbs.cq import CQ, CompChannel
    from pyverbs.mr import MR
    from pyverbs.pyverbs_error import PyverbsError
    from pyverbs.qp import QPCap, QPInitAttr
except ImportError as missing:
    sys.exit(f"error: no pyverbs for {sys.executable}: {missing}. Next: install the package python3-pyverbs; or, in a "
             "checkout and without root, `tools/lab/setup.sh python`, and then `. target/tools/env`")

import more
from more import cm, ib

MESSAGE = struct.Struct(">4sIII")  # "DG11", client, number, word: 16 bytes, big-endian.
MAGIC = b"DG11"
COINS = 10  # What a client puts into its box each time.
GOODBYE = 0  # The word of its last request.
FRONT = 40  # Bytes in front of each datagram in its receive: a GRH, or what takes its place.
RECEIVES = 4  # So many are posted.
PORT = 1  # The device's; SoftRoCE has one.
TRIES = 12  # How often the client asks,
TIMEOUT = 0.5  # and how long it waits for an answer before it asks again, in seconds.
LINGER = 2.0  # So long the server stays after the goodbye: its answer may be lost, and then the client asks again.
ANSWER, KNOCK = 10, 600  # How long we wait for what has to come, and for a client.
QUEUE = QPCap(max_send_wr=8, max_recv_wr=RECEIVES, max_send_sge=1, max_recv_sge=1, max_inline_data=MESSAGE.size)


class Failed(Exception):
    """What went wrong."""


class Side:
    """One side, and all that belongs to it."""

    def __init__(self):
        self.channel = CMEventChannel()
        self.listener = self.id = self.completions = self.cq = None
        self.ah, self.qp_num = None, 0  # Where our datagrams go: the way to the machine, and the queue pair there.
        self.client = 0  # The client's number, which the server gives.
        self.outgoing, self.receives = None, deque()  # Posted, the oldest first. Datagrams take them in this order.
        self.last = self.coins = 0  # The server: the last request that it carried out, and the answer.


# ---- Ask for a service: the client gets a queue pair's number and its Q_Key, and no connection. ----------------------

def wait_event(channel, wanted, limit=ANSWER):
    """The channel's next event. It is the caller's to close: what it carries is gone then."""
    if not readable(more.descriptor(channel), limit):
        raise Failed("waited for an event of the connection manager, in vain")
    event = CMEvent(channel)
    if event.event_type != wanted:
        got, status = cm.rdma_cm_event_type(event.event_type).name, more.status(event)
        event.close()
        raise Failed(f"waited for {cm.rdma_cm_event_type(wanted).name}, got {got} with status {status}")
    return event


def listen(side, args):
    """RDMA_PS_UDP: a space of ports of its own. A service of lesson 01 on the same port is another one."""
    side.listener = CMID(creator=side.channel, port_space=cm.RDMA_PS_UDP)
    more.bind_addr(side.listener, AddrInfo(src=args.address, src_service=args.port, port_space=cm.RDMA_PS_UDP,
                                           flags=cm.RAI_PASSIVE))
    side.listener.listen(8)
    say(f"listening on {args.address} port {args.port}")


def wait_connect_request(side):
    event = wait_event(side.channel, cm.RDMA_CM_EVENT_CONNECT_REQUEST, KNOCK)
    side.id = more.new_id(event, side.listener)
    event.close()


def resolve(side, args):
    side.id = CMID(creator=side.channel, port_space=cm.RDMA_PS_UDP)
    side.id.resolve_addr(AddrInfo(dst=args.address, dst_service=args.port, port_space=cm.RDMA_PS_UDP))
    wait_event(side.channel, cm.RDMA_CM_EVENT_ADDR_RESOLVED).close()
    side.id.resolve_route()
    wait_event(side.channel, cm.RDMA_CM_EVENT_ROUTE_RESOLVED).close()


def create_resources(side):
    """As in lesson 02, and the queue pair is one for datagrams. It has no peer, and is ready to send at once."""
    side.completions = CompChannel(side.id.context)
    side.cq = CQ(side.id.context, 4 * RECEIVES, None, side.completions, 0)
    side.id.create_qp(QPInitAttr(qp_type=ib.IBV_QPT_UD, scq=side.cq, rcq=side.cq, cap=QUEUE, sq_sig_all=1))


def accept(side):
    """Answers with our queue pair's number and its Q_Key. The private data tells the client its number."""
    side.client = 1
    answer = ConnParam(data_len=MESSAGE.size)
    answer.set_private_data(MESSAGE.pack(MAGIC, side.client, 0, 0))
    side.id.accept(answer)


def connect(side):
    """An address has three parts: the way to the machine, the queue pair there, and its key. All three come with
    ESTABLISHED. (The key needs no place here: `post_ud_send` takes the one that librdmacm gives to all.)"""
    side.id.connect(ConnParam(resources=0, depth=0))
    event = wait_event(side.channel, cm.RDMA_CM_EVENT_ESTABLISHED)
    there = UDParam(event)
    _, side.client, _, _ = MESSAGE.unpack_from(event.private_data)
    side.ah, side.qp_num = AH(side.id.pd, attr=there.ah_attr), there.qp_num
    event.close()


# ---- Datagrams: out, and in. -----------------------------------------------------------------------------------------

def post_receives(side):
    """40 bytes more than a message has. A datagram that does not fit is lost, and so is one that finds no receive."""
    side.outgoing = MR(side.id.pd, MESSAGE.size, 0)
    for _ in range(RECEIVES):
        post_receive(side, MR(side.id.pd, FRONT + MESSAGE.size, ib.IBV_ACCESS_LOCAL_WRITE))


def post_receive(side, region):
    side.id.post_recv(region)
    side.receives.append(region)


def send(side, number, word):
    """Each request names where it goes. Inline: the call copies the bytes, so the region may be used again."""
    side.outgoing.write(MESSAGE.pack(MAGIC, side.client, number, word), MESSAGE.size)
    side.id.post_ud_send(side.outgoing, side.ah, rqpn=side.qp_num, flags=ib.IBV_SEND_SIGNALED | ib.IBV_SEND_INLINE,
                         length=MESSAGE.size)


def readable(descriptor, limit):
    sleeper = select.poll()
    sleeper.register(descriptor, select.POLLIN)
    return sleeper.poll(max(0, limit) * 1000)


def next_completion(side, deadline):
    """Arm, poll, and only then sleep, as in lesson 05. None: the time is up."""
    while True:
        side.cq.req_notify()
        count, batch = side.cq.poll(1)
        if count:
            return batch[0]
        if not readable(more.descriptor(side.completions), deadline - time.monotonic()):
            return None
        side.completions.get_cq_event(side.cq)
        side.cq.ack_events(1)


def take(side, deadline):
    """The numbers of the next message, whatever it is. None: the time is up."""
    while wc := next_completion(side, deadline):
        if wc.status != ib.IBV_WC_SUCCESS:
            raise Failed(f"a request completed with {ib.ibv_wc_status(wc.status).name}")
        # A SEND's completion says no more than that it was sent.
        if wc.opcode != ib.IBV_WC_RECV:
            continue
        region = side.receives.popleft()
        magic, *numbers = MESSAGE.unpack(region.read(MESSAGE.size, FRONT))
        # Anybody can send a datagram.
        is_message = wc.byte_len == FRONT + MESSAGE.size and magic == MAGIC
        if is_message:
            way_back(side, wc, region)
        post_receive(side, region)
        if is_message:
            return numbers
    return None


# ---- Requests and answers. -------------------------------------------------------------------------------------------

def way_back(side, wc, region):
    """The way to who has sent this: the completion names its queue pair, what lies in front its machine."""
    if not side.ah:
        side.ah, side.qp_num = AH(side.id.pd, wc=wc, port_num=PORT, grh=region.buf), wc.src_qp


def serve(side):
    """Answers until the goodbye, and stays a little: whoever has not heard the last answer asks again."""
    is_over = False
    while message := take(side, time.monotonic() + (LINGER if is_over else ANSWER)):
        _, number, word = message
        if number >= side.last:
            answer(side, number, word)
            is_over = word == GOODBYE
    if not is_over:
        raise Failed("waited for a request, in vain. Of datagrams nobody is told when a client is gone")


def answer(side, number, word):
    """Puts the coins into the box, unless that was done: a request that comes again has the number of the last one, and
    the same answer."""
    if number > side.last:
        side.last, side.coins = number, side.coins + word
    send(side, number, side.coins)


def ask(side, number, word):
    """Asks until an answer comes. The number stays the same: by it the server knows what it has carried out."""
    for _ in range(TRIES):
        send(side, number, word)
        deadline = time.monotonic() + TIMEOUT
        while message := take(side, deadline):
            # One with another number is an old answer: it was slow, or came twice.
            if message[:2] == [side.client, number]:
                return message[2]
        say(f"request {number}: no answer in {TIMEOUT} s")
    raise Failed("no answer: is the server there?")


def put_coins(side, args):
    for number in range(1, args.requests + 1):
        say(f"request {number}: {ask(side, number, COINS)} coins are in the box")
    ask(side, args.requests + 1, GOODBYE)


# ---- Both sides from beginning to end. -------------------------------------------------------------------------------

def run_client(side, args):
    resolve(side, args)
    create_resources(side)
    post_receives(side)
    connect(side)
    put_coins(side, args)


def run_server(side, args):
    listen(side, args)
    wait_connect_request(side)
    create_resources(side)
    post_receives(side)
    accept(side)
    serve(side)


def teardown(side):
    """Destroys in the one right order: what uses something goes before what it uses."""
    if side.cq:
        more.destroy_qp(side.id)
    memory, ids = [side.outgoing, *side.receives], [side.id, side.listener]
    for one in [side.ah, *memory, side.cq, side.completions, *ids, side.channel]:
        if one:
            one.close()


def say(text):
    print(text, flush=True)


def arguments():
    parser = argparse.ArgumentParser(description="Lesson 11 in Python, with pyverbs")
    parser.add_argument("role", choices=("server", "client"))
    parser.add_argument("-a", "--address", default="::", help="the server's own, or the server to ask")
    parser.add_argument("-p", "--port", default="7471")
    parser.add_argument("--requests", type=int, default=2, help="how often to put coins into the box")
    parser.add_argument("--transport", choices=("ud",), default="ud", help="as the lesson's own program has it")
    return parser.parse_args()


def main():
    args, side = arguments(), Side()
    try:
        run_client(side, args) if args.role == "client" else run_server(side, args)
        return 0
    except (Failed, PyverbsError, socket.gaierror) as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return 1
    finally:
        teardown(side)


if __name__ == "__main__":
    sys.exit(main())
