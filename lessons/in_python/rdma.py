#!/usr/bin/env python3
"""Lessons 01 to 07 in Python: the same stages and the same bytes on the wire, with pyverbs from rdma-core.

    rdma.py server [-a ADDR] [-n COUNT] [--lesson N]        rdma.py client -a ADDR [-s TEXT] [--lesson N]

What each lesson does on either side comes first; then the stages, in the order in which the lessons add them. Behind
them stand how a program waits, and the command line. What pyverbs keeps to itself, more.py has.
"""
import argparse
import enum
import errno
import os
import select
import socket
import struct
import sys
import traceback
from collections import deque
from types import SimpleNamespace
from typing import NamedTuple

try:
    from pyverbs.cmid import CMID, AddrInfo, CMEvent, CMEventChannel, ConnParam
    from pyverbs.cq import CQ, CompChannel
    from pyverbs.mr import MR
    from pyverbs.pyverbs_error import PyverbsError
    from pyverbs.qp import QPCap, QPInitAttr
except ImportError as missing:
    sys.exit(f"error: no pyverbs for {sys.executable}: {missing}. Next: install the package python3-pyverbs; or, in a "
             "checkout and without root, `tools/lab/setup.sh python`, and then `. target/tools/env`")

import more
from more import cm, ib

BACKLOG = 8  # How many clients may wait to be looked at, as in listen(2).
REASON = b"lesson 01 has nothing to offer yet: come back in lesson 02"
CONSUMER_REJECT = 28  # The status of REJECTED if the server's *program* said no, and not its kernel.
QUEUE = QPCap(max_send_wr=8, max_recv_wr=8, max_send_sge=1, max_recv_sge=1)
CQE = 16  # Room in the CQ: all that both queues can complete.
ACK_TIMEOUT = 17  # The device waits 4.096 µs × 2^17 = 0.54 s for an ACK before it sends again. In the ConnectRequest,
READS, RETRIES, RNR_RETRIES = 1, 6, 6  # as are: READs under way at a time; how often a packet is sent again.
MAX_LEN = 1 << 20  # The longest buffer that the server registers for a client, in bytes.
OWN_LEN = 4096  # The buffer that a side registers without knowing what the other needs, in bytes.
MESSAGE_LEN = 64  # Room for a message of the other side, in bytes.
RECEIVES = {6: 2, 7: 2 + 4}  # An MR and a DONE come from the peer. Lesson 07 posts four more: these come back flushed.
METADATA = struct.Struct(">QII")  # {addr, rkey, len}: 16 bytes, big-endian, the layout that rping uses.


class Failed(Exception):
    """What went wrong, and what to do next."""

    def __str__(self):
        return "{}. Next: {}".format(*self.args)


class Metadata(NamedTuple):
    addr: int
    rkey: int
    len: int


REFUSAL = Metadata(0, 0, 0)  # No buffer at all.


class Connection:
    """One side of a connection, and all that belongs to it."""

    def __init__(self, cmid, channel):
        self.id = cmid
        self.channel = channel  # Its own, so that events of other connections do not come between.
        self.completion_channel = self.cq = None
        self.regions = []  # Kept until teardown: the device may reach them until then.
        self.receives = deque()  # Posted, the oldest first. Messages take them in this order.
        self.unfinished = 0  # Requests in both queues that have not completed.
        self.early = []  # Completions that came before anybody asked for them.


# ---- What each lesson does -------------------------------------------------------------------------------------------

def client_01(c, args):
    knock(c)
    read_reason(c)


def client_02(c, args):
    create_resources(c)
    connect(c)
    disconnect(c)


def client_03_to_05(c, args):
    create_resources(c)
    source = register_source(c, args)
    theirs = ask(c, source)
    check_room(source, theirs)
    if args.lesson >= 4:
        write(c, source, theirs)
        wait_for(c, ib.IBV_WC_RDMA_WRITE, "an RDMA WRITE")
    if args.lesson >= 5:
        read_back(c, source, theirs)
    disconnect(c)


def client_06(c, args):
    create_resources(c)
    register_buffers(c, args)
    connect(c)
    exchange(c, args)
    show_memory(c.destination)
    disconnect(c)


def client_07(c, args):
    create_resources(c)
    register_buffers(c, args)
    connect(c, terms(args))
    exchange_and_close(c, args)
    show_memory(c.destination)


def server_01(c, args, asked):
    reject(c, REASON)


def server_02(c, args, asked):
    create_resources(c)
    wait_disconnect(c, accept(c, asked))


def server_03_to_05(c, args, asked):
    create_resources(c)
    post_receive(c)
    connected = accept(c, asked)
    buffer = register_wanted(c, receive_metadata(c))
    send_metadata(c, metadata_of(buffer))
    # In lessons 04 and 05 the client WRITEs and READs now. Nothing tells this program: it waits for the goodbye.
    wait_disconnect(c, connected)
    if args.lesson >= 4:
        show_memory(buffer)


def server_06(c, args, asked):
    create_resources(c)
    register_buffers(c, args)
    connected = accept(c, asked)
    exchange(c, args)
    show_memory(c.destination)
    wait_disconnect(c, connected)


def server_07(c, args, asked):
    check_terms(c, args, asked)
    create_resources(c)
    register_buffers(c, args)
    if not accept(c, asked):
        raise Failed("the client hung up before anything was exchanged", ASK_THERE)
    exchange_and_close(c, args)
    show_memory(c.destination)


CLIENTS = [client_01, client_02, *[client_03_to_05] * 3, client_06, client_07]
SERVERS = [server_01, server_02, *[server_03_to_05] * 3, server_06, server_07]


def run_client(args):
    c = resolve(args)
    try:
        CLIENTS[args.lesson - 1](c, args)
    finally:
        teardown(c)
    say("client clean-up is complete")


def run_server(args):
    listening = CMEventChannel()
    listener = listen(listening, args)
    served = failed = 0
    try:
        while args.count == 0 or served < args.count:
            c, asked = wait_connect_request(listening, listener)
            served += 1
            failed += not serve(c, args, asked, served)
    finally:
        stop_listening(listener, listening)
    if failed:
        raise Failed(f"{failed} of {served} clients could not be served", "The errors before this one say why")


def serve(c, args, asked, number):
    """A failure is one client's: it is told, all that this client had is destroyed, and the next one is served."""
    try:
        # The connection's events get a channel of their own: the next client's knock waits at the listener's.
        c.channel = CMEventChannel()
        more.migrate_id(c.id, c.channel)
        SERVERS[args.lesson - 1](c, args, asked)
        return True
    except (Failed, PyverbsError) as error:
        complain(f"client {number} from {name(*more.peer_addr(c.id))}: {explain(error)}")
        return False
    finally:
        teardown(c)


# ---- Lesson 01: the connection manager -------------------------------------------------------------------------------

def listen(channel, args):
    """An id is what a socket is to TCP. Bound to the address `::` it serves every RDMA device of this machine."""
    def listen_at(host, port):
        listener = CMID(creator=channel)
        more.bind_addr(listener, AddrInfo(src=host, src_service=port, port_space=cm.RDMA_PS_TCP, flags=cm.RAI_PASSIVE))
        # Returns at once. Nothing is sent: a listener is an entry in a table of our own kernel.
        listener.listen(BACKLOG)
        say(f"listening on {name(host, port)}")
        return listener

    return try_each(args, listen_at)


def wait_connect_request(channel, listener):
    """The knock brings a new id: it is the client. With it comes what the client asks for."""
    asked = wait_event(channel, cm.RDMA_CM_EVENT_CONNECT_REQUEST, listener=listener)
    return Connection(asked.id, None), asked


def reject(c, words):
    """Sends the ConnectReject with our reason. At the end the id is destroyed, because it has no more to do."""
    say(f"{name(*more.peer_addr(c.id))} knocked")
    c.id.reject(words)


def stop_listening(listener, channel):
    """An id goes before the channel that its events came through."""
    listener.close()
    channel.close()
    say("server shut-down is complete")


def resolve(args):
    """Each call only starts the work; the event that follows brings the answer."""
    channel = CMEventChannel()

    def resolve_at(host, port):
        cmid = CMID(creator=channel)
        # The routing table says which device leads there. ARP, which is not RDMA, finds the server's Ethernet address.
        cmid.resolve_addr(AddrInfo(dst=host, dst_service=port, port_space=cm.RDMA_PS_TCP))
        wait_event(channel, cm.RDMA_CM_EVENT_ADDR_RESOLVED)
        return cmid

    cmid = try_each(args, resolve_at)
    if args.lesson > 1:
        # Before the route is resolved, and so before the ConnectRequest, which tells the server.
        cmid.set_option(cm.RDMA_OPTION_ID, cm.RDMA_OPTION_ID_ACK_TIMEOUT, ACK_TIMEOUT, 1)
    # Which path? InfiniBand would ask. On Ethernet there is only one, so nothing is sent.
    cmid.resolve_route()
    wait_event(channel, cm.RDMA_CM_EVENT_ROUTE_RESOLVED)
    return Connection(cmid, channel)


def knock(c):
    """Sends the ConnectRequest. It offers no resources and brings no private data: we only want to hear the answer."""
    c.id.connect(ConnParam(resources=0, depth=0, retry=0, rnr_retry=0))


def read_reason(c):
    """The answer is a REJECTED event. Its status is the reason's number, its private data the server's own words."""
    event = wait_event(c.channel, cm.RDMA_CM_EVENT_REJECTED)
    if event.status != CONSUMER_REJECT:
        raise unexpected(event, "words of the server")
    say(f"rejected with status {event.status} (consumer reject: the peer's program said no)")
    say(f"the server says: {preview(event.private_data)}")


# ---- Lesson 02: resources, and a connection --------------------------------------------------------------------------

def create_resources(c):
    """All of them live on the device that the id is bound to. The PD is the one that librdmacm keeps for that device:
    pyverbs makes an id's QP in no other."""
    c.completion_channel = CompChannel(c.id.context)
    c.cq = CQ(c.id.context, CQE, None, c.completion_channel, 0)
    # The id now owns a QP, in the state INIT: receives may be posted, nothing can be sent. With sq_sig_all each request
    # says when it is complete.
    c.id.create_qp(QPInitAttr(qp_type=ib.IBV_QPT_RC, scq=c.cq, rcq=c.cq, cap=QUEUE, sq_sig_all=1))


def connect(c, private_data=b""):
    """Sends the ConnectRequest with our QP's number, and waits for the ConnectReply, which carries the server's."""
    request = ConnParam(resources=READS, depth=READS, retry=RETRIES, rnr_retry=RNR_RETRIES, data_len=len(private_data))
    request.set_private_data(private_data)
    c.id.connect(request)
    wait_event(c.channel, cm.RDMA_CM_EVENT_ESTABLISHED)
    say("connected")


def accept(c, asked):
    """`rdma_accept` moves our QP to RTR and RTS, and sends the ConnectReply. The client's ReadyToUse makes it
    ESTABLISHED. If that is lost, a client that wants nothing more may hang up before it is sent again: False."""
    c.id.set_option(cm.RDMA_OPTION_ID, cm.RDMA_OPTION_ID_ACK_TIMEOUT, ACK_TIMEOUT, 1)
    # Nobody compares the two sides' numbers for us: a server must not take more than it was asked for.
    resources, depth = (min(READS, number) for number in asked.asked)
    c.id.accept(ConnParam(resources=resources, depth=depth, retry=RETRIES, rnr_retry=RNR_RETRIES))
    event = wait_event(c.channel, cm.RDMA_CM_EVENT_ESTABLISHED, cm.RDMA_CM_EVENT_DISCONNECTED)
    say(f"a connection from {name(*more.peer_addr(c.id))} is accepted")
    return event.type == cm.RDMA_CM_EVENT_ESTABLISHED


def disconnect(c):
    """Moves our QP to ERR and sends the DisconnectRequest. The event comes when the server has answered."""
    c.id.disconnect()
    wait_event(c.channel, cm.RDMA_CM_EVENT_DISCONNECTED)


def wait_disconnect(c, connected):
    """The client goes first. Our own `rdma_disconnect` answers, or the client would wait for its time-out."""
    if connected:
        wait_event(c.channel, cm.RDMA_CM_EVENT_DISCONNECTED)
    say("the client has disconnected")
    c.id.disconnect()


def teardown(c):
    """Destroys in the one right order: what uses something goes before what it uses."""
    if c.cq:
        more.destroy_qp(c.id)
    for one in [*c.regions, c.cq, c.completion_channel, c.id, c.channel]:
        if one:
            one.close()


# ---- Lesson 03: memory, and where it is ------------------------------------------------------------------------------

def register(c, length, access):
    """`ibv_reg_mr`. pyverbs brings the memory, too."""
    region = MR(c.id.pd, length, access)
    c.regions.append(region)
    return region


def register_source(c, args):
    """What will be written. REMOTE_READ, so that the rkey that is sent for it is one: the other side could READ."""
    if args.lesson == 3:
        return register(c, OWN_LEN, ib.IBV_ACCESS_REMOTE_READ)
    # 251 is prime: a piece in a wrong place never looks right, as it could with 256.
    payload = bytes(i % 251 for i in range(args.len)) if args.len else args.text.encode()
    say(f"to be written: {preview(payload)} ({len(payload)} bytes)")
    source = register(c, len(payload), ib.IBV_ACCESS_REMOTE_READ)
    source.write(payload, len(payload))
    return source


def register_buffer(c, length):
    """Memory that the other side may WRITE and READ without our doing."""
    # REMOTE_WRITE needs LOCAL_WRITE too: in the end it is our device that writes.
    return register(c, length, ib.IBV_ACCESS_LOCAL_WRITE | ib.IBV_ACCESS_REMOTE_WRITE | ib.IBV_ACCESS_REMOTE_READ)


def post_receive(c):
    """Lends the device room for the other side's message. This comes before connect and accept: a SEND that finds no
    receive posted is turned away with an RNR NAK ("receiver not ready")."""
    # LOCAL_WRITE, for it is our own device that writes here.
    region = register(c, MESSAGE_LEN, ib.IBV_ACCESS_LOCAL_WRITE)
    c.id.post_recv(region)
    c.receives.append(region)
    c.unfinished += 1


def ask(c, source):
    """We SEND how much memory we want, and the server answers with where it is."""
    post_receive(c)
    connect(c)
    send(c, metadata_of(source))
    wait_for(c, ib.IBV_WC_SEND, "a SEND of our metadata")
    return receive_metadata(c)


def send(c, message):
    region = register(c, len(message), 0)
    region.write(message, len(message))
    c.id.post_send(region)
    c.unfinished += 1


def metadata_of(region):
    return METADATA.pack(region.buf, region.rkey, region.length)


def read_metadata(message):
    """At least 16 bytes; what follows is padding."""
    if len(message) < METADATA.size:
        raise Failed(f"the peer's metadata has {len(message)} bytes, not {METADATA.size}", SAME_LESSON)
    theirs = Metadata(*METADATA.unpack_from(message))
    if theirs != REFUSAL and (theirs.len == 0 or theirs.addr + theirs.len >= 1 << 64):
        raise Failed(f"the peer's metadata makes no sense: {theirs}", SAME_LESSON)
    return theirs


def receive_metadata(c):
    return read_metadata(message(c, wait_for(c, ib.IBV_WC_RECV, "a RECV with the peer's metadata")))


def message(c, wc):
    """What arrived. The completion says how many bytes came, which may be fewer than there is room for."""
    return c.receives.popleft().read(wc.byte_len, 0)


def register_wanted(c, wanted):
    """A buffer as long as the client's. One longer than we give is refused with a buffer of no bytes."""
    say(f"the client's buffer: addr={wanted.addr:#x} rkey={wanted.rkey:#x} len={wanted.len}; "
        f"it asks for one of {wanted.len} bytes")
    if not 0 < wanted.len <= MAX_LEN:
        send_metadata(c, METADATA.pack(*REFUSAL))
        raise Failed(f"the client asked for {wanted.len} bytes: 1 to {MAX_LEN} are allowed", "Let it ask for less")
    return register_buffer(c, wanted.len)


def send_metadata(c, metadata):
    """The client has our message when its ACK comes. If it hangs up instead, it wants nothing more of us."""
    send(c, metadata)
    wait_for(c, ib.IBV_WC_SEND, "a SEND of our metadata", or_goodbye=True)


def check_room(source, theirs):
    """The other side may have less room than we need, or, if it refused, none."""
    if source.length > theirs.len:
        raise Failed(f"our {source.length} bytes do not fit into the other side's {theirs.len}",
                     "Write no more than that, and give both sides the same options")


# ---- Lessons 04 and 05: WRITE, READ ----------------------------------------------------------------------------------

def write(c, source, theirs):
    """One-sided: the request carries the other side's address and rkey, and its device does the rest. The completion
    means that its device has the bytes; that its *program* knows, it does not mean."""
    c.id.post_write(source, source.length, theirs.addr, theirs.rkey)
    c.unfinished += 1


def show_memory(buffer):
    """The other side's goodbye is how we know that its WRITE is done: nothing else has told this program about it."""
    say(f"the memory holds {buffer.length} bytes: {preview(buffer.read(buffer.length, 0))}")


def read(c, destination, theirs):
    """One-sided too: the other side's device answers. Our device writes the bytes into `destination`."""
    c.id.post_read(destination, min(destination.length, theirs.len), theirs.addr, theirs.rkey)
    c.unfinished += 1


def read_back(c, source, theirs):
    """What comes back must be what went out. Nobody but our own device writes where our READ puts it."""
    destination = register(c, source.length, ib.IBV_ACCESS_LOCAL_WRITE)
    read(c, destination, theirs)
    wait_for(c, ib.IBV_WC_RDMA_READ, "an RDMA READ")
    sent, received = source.read(source.length, 0), destination.read(destination.length, 0)
    say(f"read back: {preview(received)}")
    if sent != received:
        raise Failed("source and destination buffers differ", "Look in the capture at what the packets carry")
    say("SUCCESS, source and destination buffers match")


# ---- Lesson 06: both sides do everything, driven by completions ------------------------------------------------------

class SS(enum.IntEnum):
    """How far our own messages have got."""
    INIT, MR_SENT, RDMA_SENT, DONE_SENT = range(4)


class RS(enum.IntEnum):
    """How far the peer's have."""
    INIT, MR_RECV, DONE_RECV = range(3)


class State(NamedTuple):
    send: SS = SS.INIT
    recv: RS = RS.INIT

    def knows_both(self):
        return self.send >= SS.MR_SENT and self.recv >= RS.MR_RECV

    def __str__(self):
        return f"SS_{self.send.name} RS_{self.recv.name}"


def machine(role, state, event):
    """The next state, and what to do there: a pure function. Each event is a completion, and they come in any order."""
    action = None
    match event, *state:
        case "SendCompleted", SS.INIT, _:
            after = state._replace(send=SS.MR_SENT)
        case "RdmaCompleted", SS.MR_SENT, RS.MR_RECV | RS.DONE_RECV:
            after, action = state._replace(send=SS.RDMA_SENT), "SendDone"
        case "SendCompleted", SS.RDMA_SENT, RS.MR_RECV | RS.DONE_RECV:
            after = state._replace(send=SS.DONE_SENT)
        case "MrReceived", SS.INIT | SS.MR_SENT, RS.INIT:
            # Who begins is fixed. Else a client could take itself for a server, and send its MR twice.
            after, action = state._replace(recv=RS.MR_RECV), "SendMr" if role == "server" else None
        case "DoneReceived", _, RS.MR_RECV:
            after = state._replace(recv=RS.DONE_RECV)
        case _:
            raise Failed(f"{event} cannot come in the state {state}", SAME_LESSON)
    # The peer knows our memory and we know the peer's: whichever came second starts the operation.
    return after, "PostRdma" if after.knows_both() and not state.knows_both() else action


def register_buffers(c, args):
    """What we have for the peer, room for what the peer has for us, and receives for the peer's messages."""
    c.source, c.destination = register_source(c, args), register_buffer(c, OWN_LEN)
    for _ in range(RECEIVES[args.lesson]):
        post_receive(c)


def exchange(c, args):
    """Waits for completions, tells the machine what they mean, and does what it says, until both sides are done."""
    state, theirs = State(), REFUSAL
    if args.role == "client":
        perform(c, args, "SendMr", theirs)
    while state != (SS.DONE_SENT, RS.DONE_RECV):
        batch = completions(c, f"a completion in the state {state}")
        if not batch:
            # The peer hung up, which it does when it has our DONE. If its DONE is here, too, only the ACK was lost.
            if state == (SS.RDMA_SENT, RS.DONE_RECV):
                return
            raise Failed(f"the connection ended in the state {state}", ASK_THERE)
        # A whole batch: the event that woke us may stand for several, and will not come again for them.
        for wc in batch:
            if args.lesson == 7 and wc.status == ib.IBV_WC_WR_FLUSH_ERR:
                continue  # An echo of what has come, or comes, with another status, or as a goodbye.
            event, theirs = interpret(c, succeeded(wc), state, theirs)
            state, action = machine(args.role, state, event)
            if action:
                perform(c, args, action, theirs)


def interpret(c, wc, state, theirs):
    """What a completion means. Messages arrive in order: the first is the MR, the second the DONE."""
    if wc.opcode != ib.IBV_WC_RECV:
        return "SendCompleted" if wc.opcode == ib.IBV_WC_SEND else "RdmaCompleted", theirs
    words = message(c, wc)
    if state.recv == RS.INIT:
        return "MrReceived", read_metadata(words)
    say(f"received message: {preview(words)}")
    return "DoneReceived", theirs


def perform(c, args, action, theirs):
    """One request, whose completion is the next event of our own."""
    if action == "SendMr":
        send(c, metadata_of(c.destination if args.mode == "write" else c.source))
    elif action == "SendDone":
        side = "active/client" if args.role == "client" else "passive/server"
        send(c, f"message from {side} side with pid {os.getpid():07}".encode())
    elif args.mode == "write":
        check_room(c.source, theirs)
        write(c, c.source, theirs)
    else:
        read(c, c.destination, theirs)


# ---- Lesson 07: hang up, and account for every posted receive --------------------------------------------------------

def terms(args):
    """What both sides must agree on. It travels in the private data of the ConnectRequest."""
    return f"{args.mode} {args.closer}".encode()


def check_terms(c, args, asked):
    """With different terms the two programs would wait for each other, so we'd rather say no now, and why."""
    if not asked.private_data.startswith(terms(args)):
        why = "client and server differ in -m or --closer"
        c.id.reject(why.encode())
        raise Failed(why, "Run lesson 07 on both sides, with the same -m and --closer")


def exchange_and_close(c, args):
    """However it went, we close in good order. After a failure we don't wait for the other's goodbye."""
    try:
        exchange(c, args)
    except (Failed, PyverbsError) as cause:
        try:
            close(c, goes_first=True)
        except (Failed, PyverbsError):
            pass  # It only followed from the cause.
        raise cause
    close(c, goes_first=args.closer == args.role)


def close(c, goes_first):
    """Who goes first sends the DisconnectRequest; the other waits for it, and answers."""
    if not goes_first:
        wait_event(c.channel, cm.RDMA_CM_EVENT_DISCONNECTED)
    c.id.disconnect()
    drain(c)
    if goes_first:
        wait_event(c.channel, cm.RDMA_CM_EVENT_DISCONNECTED)


def drain(c):
    """The disconnect moved the QP to ERR: each request that was not finished completes with WR_FLUSH_ERR. That is no
    fault, and tells nothing about the cause: look for the first completion with another status."""
    drained = []
    while c.unfinished:
        c.cq.req_notify()
        batch = poll(c)
        if not batch:
            wait_readable([more.descriptor(c.completion_channel)], "the receives that the disconnect flushes")
            take_cq_event(c)
        drained += batch
    others = [wc for wc in drained if wc.status != ib.IBV_WC_WR_FLUSH_ERR]
    # A SEND that the goodbye caught under way comes back here, too.
    say(f"{min(len(drained) - len(others), len(c.receives))} receives came back flushed")
    for wc in others:
        succeeded(wc)


# ---- How a program waits ---------------------------------------------------------------------------------------------

LIMITS = {"answer": 10, "knock": 600}  # In seconds. A person must walk over to the client's machine before it knocks.


def wait_readable(descriptors, awaited, limit="answer"):
    """Sleeps until one of the descriptors can be read, and not for ever, unless that is asked for (-n 0)."""
    sleeper, seconds = select.poll(), LIMITS[limit]
    for one in descriptors:
        sleeper.register(one, select.POLLIN)
    ready = sleeper.poll(seconds and seconds * 1000)
    if not ready:
        raise Failed(f"waited {seconds} s for {awaited}, in vain", "Look at the other side: has it ended, and why? If "
                     "it waits too, do packets pass (firewalls drop UDP 4791)?")
    return [one for one, _ in ready]


def next_event(channel, awaited, listener=None):
    """The channel's next event, copied and acknowledged: an id cannot be destroyed before the last ack."""
    wait_readable([more.descriptor(channel)], awaited, "knock" if listener else "answer")
    event = CMEvent(channel)
    try:
        # The private data is the event's: it must be copied before the ack. A new id, once it is ours, stays.
        knocks = event.event_type == cm.RDMA_CM_EVENT_CONNECT_REQUEST
        new_id = more.new_id(event, listener) if knocks else None
        return SimpleNamespace(type=event.event_type, status=more.status(event), id=new_id, asked=more.asked(event),
                               private_data=event.private_data or b"")
    finally:
        event.close()


def wait_event(channel, *wanted, listener=None):
    awaited = " or ".join(cm.rdma_cm_event_type(one).name for one in wanted)
    event = next_event(channel, awaited, listener)
    if event.type not in wanted:
        raise unexpected(event, awaited)
    return event


def unexpected(event, awaited):
    status, words = str(event.status), event.private_data.rstrip(b"\0")
    if event.status < 0:
        status += f" ({os.strerror(-event.status)})"
    said = f", and the peer says {preview(words)}" if words else ""
    got = cm.rdma_cm_event_type(event.type).name
    nobody_listens = got == "RDMA_CM_EVENT_REJECTED" and event.status == 8
    step = "Start the server first, and give both sides the same port" if nobody_listens else NEXT.get(got, ASK_THERE)
    return Failed(f"waited for {awaited}, got {got} with status {status}{said}", step)


def completions(c, awaited):
    """Sleeps until there are completions, and not longer than until the peer hangs up: then there are none.

    Arm, poll, and only then sleep: a completion that comes after the poll finds the CQ armed and wakes us; one that
    came before is found by the poll. In the other order it could fall between the two, and we would sleep for ever."""
    while True:
        c.cq.req_notify()
        batch = poll(c)
        if batch:
            return batch
        cq_events = more.descriptor(c.completion_channel)
        if cq_events not in wait_readable([cq_events, more.descriptor(c.channel)], awaited):
            # The goodbye comes on another way than the data, and may have overtaken it.
            return poll(c)
        take_cq_event(c)


def poll(c):
    _, batch = c.cq.poll(CQE)
    c.unfinished -= len(batch)
    return batch


def take_cq_event(c):
    c.completion_channel.get_cq_event(c.cq)
    c.cq.ack_events(1)


def wait_for(c, opcode, awaited, or_goodbye=False):
    """Waits until a request is complete. A SEND is when its ACK has come: the other side's device has it. A peer that
    hangs up ends the wait. (pyverbs posts an id's requests with wr_id 0: the opcode tells them apart.)"""
    while True:
        for wc in c.early:
            if wc.opcode == opcode:
                c.early.remove(wc)
                return wc
        batch = completions(c, awaited)
        if not batch:
            if or_goodbye:
                return None
            raise unexpected(next_event(c.channel, awaited), awaited)
        c.early += [succeeded(wc) for wc in batch]


def succeeded(wc):
    """Nothing but the status is looked at: with an error the opcode is undefined."""
    if wc.status != ib.IBV_WC_SUCCESS:
        status = ib.ibv_wc_status(wc.status).name
        raise Failed(f"a request of QP {wc.qp_num} completed with {status} (vendor_err {wc.vendor_err:#x})",
                     NEXT.get(status, ASK_THERE))
    return wc


# ---- Words, and the command line -------------------------------------------------------------------------------------

SAME_LESSON = "Run the same lesson on both sides"
ASK_THERE = "Look at what the other side says"
NEXT = {
    errno.EADDRINUSE: "Another program listens there: end it, or choose another port with -p",
    errno.EADDRNOTAVAIL: "That address is not this machine's (`ip address` lists its own), or the port is taken",
    errno.ENODEV: "No RDMA device is there: `rdma link` lists them. Without any: `target/debug/device exec --help`",
    errno.ENOMEM: "Locked memory is limited: `ulimit -l` shows how much",
    "RDMA_CM_EVENT_ADDR_ERROR": "Nobody answers at that address: ping it",
    "RDMA_CM_EVENT_UNREACHABLE": "The server's machine does not answer: is it up, and does a firewall drop UDP 4791?",
    "RDMA_CM_EVENT_DISCONNECTED": "The other side hung up: look at what it says",
    "IBV_WC_REM_ACCESS_ERR": "The peer's device refused the rkey, the range or the permission: compare its metadata",
    "IBV_WC_RETRY_EXC_ERR": "The peer's QP does not answer: is the other program, or its machine, gone?",
    "IBV_WC_RNR_RETRY_EXC_ERR": "The peer had no receive posted: it must post one before it accepts",
}


def say(text):
    print(text, flush=True)


def complain(text):
    print(f"error: {text}", file=sys.stderr, flush=True)


def explain(error):
    """pyverbs says which call failed, and why. In which stage that was, the traceback knows."""
    if isinstance(error, Failed):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    stage = [frame.name for frame in frames if frame.filename == __file__][-1]
    return f"{stage}: {error}. Next: {NEXT.get(getattr(error, 'error_code', 0), 'Its man page lists the errors')}"


def preview(data):
    """Text in quotes where it is text, else the first and last bytes. Zeroes at the end are room that nobody used."""
    data = data.rstrip(b"\0")
    try:
        text = data.decode()
        return f'"{text}"' if text.isprintable() else ascii(text)
    except UnicodeDecodeError:
        return data.hex(" ") if len(data) <= 24 else f"{data[:16].hex(' ')} … {data[-8:].hex(' ')}"


def name(host, port):
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def try_each(args, act):
    """A host name may stand for several addresses: the first that answers is good."""
    last = Failed(f'no address for the host "{args.address}"', "Check the spelling, or give the address itself")
    try:
        addresses = socket.getaddrinfo(args.address, args.port, type=socket.SOCK_STREAM)
    except socket.gaierror:
        raise last from None
    for *_, (host, *_) in addresses:
        try:
            return act(host, str(args.port))
        except (Failed, PyverbsError) as error:
            last = error
    raise last


def arguments():
    parser = argparse.ArgumentParser(description="Lessons 01 to 07 in Python, with pyverbs")
    roles = parser.add_subparsers(dest="role", required=True)
    for role in ("server", "client"):
        side = roles.add_parser(role)
        if role == "server":
            side.add_argument("-a", "--address", default="::", help="the local address to listen on; :: is all")
            side.add_argument("-n", "--count", type=number(0), default=1, help="clients to serve; 0: no end")
        else:
            side.add_argument("-a", "--address", required=True, help="the server's address or host name")
        side.add_argument("-p", "--port", type=number(0, 1 << 16), default=7471)
        side.add_argument("--lesson", type=int, choices=range(1, 8), default=7, metavar="N", help="1 to 7")
        side.add_argument("-m", "--mode", choices=("write", "read"), default="write")
        side.add_argument("--closer", choices=("client", "server"), default="client", help="which side hangs up first")
        side.add_argument("-s", "--text", default="One side writes, and the other side's processor never knows.")
        side.add_argument("--len", type=number(1), help="write so many bytes of a pattern instead")
        side.add_argument("--timeout", type=number(1), metavar="SECONDS", help="deadline of every wait")
    return parser.parse_args()


def number(least, most=1 << 32):
    def whole_number(text):
        if not least <= int(text) < most:
            raise ValueError
        return int(text)

    return whole_number


def main():
    args = arguments()
    if args.timeout:
        LIMITS.update(answer=args.timeout, knock=args.timeout)
    elif args.role == "server" and args.count == 0:
        LIMITS.update(knock=None)
    try:
        run_client(args) if args.role == "client" else run_server(args)
        return 0
    except (Failed, PyverbsError) as error:
        complain(explain(error))
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
