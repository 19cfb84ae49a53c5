"""What an RDMA program needs, and pyverbs 44 and 56 keep to themselves: calls of librdmacm, and fields of its objects; and
the numbers of C, `cm.RDMA_PS_TCP` and `ib.IBV_QPT_RC`, which stand elsewhere in each version.

Behind the fields that all of pyverbs' objects begin with, each has the pointer to the C object that it stands for. This
module reads it there, and calls librdmacm with it.
"""
import ctypes
import enum
import socket
import struct
from types import SimpleNamespace

from pyverbs.base import PyverbsCM
from pyverbs.cmid import CMID
from pyverbs.cq import CompChannel
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError

try:
    from pyverbs import cm_enums, enums
except ImportError:  # Their names in later versions.
    from pyverbs import libibverbs_enums as enums, librdmacm_enums as cm_enums

LIBRDMACM = ctypes.CDLL("librdmacm.so.1", use_errno=True)


def numbers(module):
    """What a module of pyverbs has of numbers and their types. If Cython 3.1 or later has built it, a number stands in its
    type alone: https://github.com/linux-rdma/rdma-core/pull/1615."""
    names = dict(vars(module))
    for kind in [value for value in names.values() if isinstance(value, enum.EnumMeta)]:
        names = {**kind.__members__, **names}
    return SimpleNamespace(**names)


cm, ib = numbers(cm_enums), numbers(enums)


def bind_addr(cmid, info):
    """`rdma_bind_addr`. That of pyverbs crashes for `::` and `0.0.0.0`: bound to all addresses, an id has no device."""
    # `info->ai_src_addr` stands at 24.
    call("rdma_bind_addr", c_pointer(cmid), ctypes.c_void_p.from_address(c_pointer(info).value + 24))


def new_id(event, listener):
    """`event->id` of a CONNECT_REQUEST: the client. Take it before the event is closed. pyverbs would give it the listener's
    device, which is none where that is bound to all addresses: here it has its own, `context` and `pd`."""
    cmid = CMID(creator=event, listen_id=listener)
    Context(cmid=cmid)
    PD(cmid)
    return cmid


def status(event):
    """`event->status`: below 0 it is an errno, in REJECTED the reason's number. pyverbs does not show it."""
    return CEvent.from_address(c_pointer(event).value).status


def asked(event):
    """`responder_resources` and `initiator_depth` of `event->param.conn`: how many READs at a time we have
    to answer, and may ask for. Of all that the ConnectRequest says, pyverbs shows only the private data."""
    c = CEvent.from_address(c_pointer(event).value)
    return c.responder_resources, c.initiator_depth


def descriptor(channel):
    """`channel->fd` of a CMEventChannel or a CompChannel, for select.poll. pyverbs shows none: it waits for
    one channel, in `CMEvent(channel)` or `get_cq_event`, without a time-out."""
    # The first field of a `struct rdma_event_channel`, the second of a `struct ibv_comp_channel`.
    return ctypes.c_int.from_address(c_pointer(channel).value + (8 if isinstance(channel, CompChannel) else 0)).value


def migrate_id(cmid, channel):
    """`rdma_migrate_id`: the id's events come through another channel from now on. pyverbs does not have it."""
    call("rdma_migrate_id", c_pointer(cmid), c_pointer(channel))


def destroy_qp(cmid):
    """`rdma_destroy_qp`. pyverbs does this in `cmid.close()`, which is too late for a CQ that goes before the id."""
    LIBRDMACM.rdma_destroy_qp(c_pointer(cmid))


def peer_addr(cmid):
    """`rdma_get_peer_addr`: the other side's address, as text, and its port. pyverbs does not have it."""
    # It stands in `struct rdma_cm_id`, behind four pointers and our own address's sockaddr_storage.
    address = ctypes.string_at(c_pointer(cmid).value + 4 * 8 + 128, 24)
    (family,), (port,) = struct.unpack_from("=H", address), struct.unpack_from(">H", address, 2)
    host = address[4:8] if family == socket.AF_INET else address[8:24]
    return socket.inet_ntop(family, host).removeprefix("::ffff:"), port


class CEvent(ctypes.Structure):
    """How `struct rdma_cm_event` begins, with the rdma_conn_param in it."""
    _fields_ = [("id", ctypes.c_void_p), ("listen_id", ctypes.c_void_p), ("event", ctypes.c_int),
                ("status", ctypes.c_int), ("private_data", ctypes.c_void_p), ("private_data_len", ctypes.c_uint8),
                ("responder_resources", ctypes.c_uint8), ("initiator_depth", ctypes.c_uint8)]


def c_pointer(wrapper):
    return ctypes.c_void_p.from_address(id(wrapper) + PyverbsCM.__basicsize__)


def call(function, *args):
    if getattr(LIBRDMACM, function)(*args):
        raise PyverbsRDMAError(f"{function} failed", ctypes.get_errno())
