//! The next step for each error: what a person at the keyboard should do now.

use super::{reject::CONSUMER_REJECT, Error};
use crate::cm_event_type::*;
use crate::wc_status::*;

/// One sentence.
pub fn next_step(error: &Error) -> String {
    match error {
        Error::Call { call, errno } => call_step(call, *errno).into(),
        Error::Event { got, status, .. } => event_step(*got, *status).into(),
        Error::Completion { status, .. } => completion_step(*status).into(),
        Error::Deadline { .. } => {
            "Look at the other side's log: has it ended, and with which error? If it waits too, and on another machine, \
             `sudo tcpdump -ni any udp port 4791` there tells whether packets arrive. If they do and get no answer, its own \
             firewall may still drop them (tcpdump looks first): `sudo nft list ruleset`"
                .into()
        }
        Error::Content { next, .. } => next.clone(),
    }
}

fn call_step(call: &str, errno: i32) -> &'static str {
    match (call, errno) {
        ("rdma_create_event_channel", libc::ENODEV | libc::ENOENT) => {
            "This machine has no RDMA device, or rdma_ucm is not loaded, or the device's provider is not installed \
             (ibverbs-providers). Run `sudo tools/lab/softroce.sh up` here, or try the lesson without any device: `make lesson-01`"
        }
        (_, libc::ENODEV) => {
            "That address is on no RDMA device. `rdma link` lists the devices and their netdevs (SoftRoCE does not serve \
             127.0.0.1)"
        }
        ("rdma_bind_addr" | "rdma_listen", libc::EADDRINUSE) => {
            "Another program listens there: `rdma resource show cm_id` names it. End it, or choose another port with -p"
        }
        ("rdma_bind_addr", libc::EADDRNOTAVAIL) => {
            "That address is not this machine's (`ip address` lists its own), or a listener on all addresses has the port \
             already (`rdma resource show cm_id` names it; choose another with -p)"
        }
        ("ibv_post_send" | "ibv_post_recv" | "ibv_post_srq_recv", libc::ENOMEM) => {
            "The queue is full: wait for completions, and poll them, before you post more; or ask for a longer queue"
        }
        ("ibv_post_send", libc::EINVAL) => {
            "Is the QP in RTS yet (its dump tells)? If so, compare the SGEs and inline bytes of the request with what the QP \
             has room for; and an atomic's address must be a multiple of eight. An iWARP device (`ibv_devinfo` names the transport) \
             has neither immediate data nor atomics"
        }
        ("rdma_create_qp" | "ibv_create_qp", libc::EINVAL) => {
            "You ask for more than the device has: compare requests, SGEs and inline bytes with `ibv_devinfo -v` (siw takes 80 \
             inline bytes, and doesn't say so)"
        }
        ("rdma_create_qp" | "ibv_create_qp", libc::EOPNOTSUPP) => {
            "The device has no queue pairs of this kind: an iWARP device has connected ones (RC), and no datagrams"
        }
        ("ibv_modify_qp", libc::EINVAL) => {
            "Some attribute does not fit: the state that the QP comes from, a GID index whose address is of another kind than \
             the peer's, a path MTU that the port does not have"
        }
        ("ibv_modify_qp", libc::ETIMEDOUT) => {
            "Nobody answers for the peer's GID in the network of your own: compare both GID indices (`ibv_devinfo -v`), and \
             ping the peer from the interface of yours"
        }
        ("ibv_reg_mr" | "ibv_create_cq" | "rdma_create_qp", libc::ENOMEM | libc::EPERM) => {
            "Locked memory is limited: `ulimit -l` shows how much. Run `ulimit -l unlimited` (as root, or set memlock in \
             /etc/security/limits.conf and log in again; for a container `docker run --ulimit memlock=-1`)"
        }
        ("ibv_reg_mr", libc::EINVAL) => {
            "A region has at least one byte, and REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE beside them"
        }
        ("ibv_reg_mr", libc::EFAULT) => {
            "All of the range must be mapped, and writable if you ask for LOCAL_WRITE: neither a constant nor a file mapped \
             read-only is. GPU memory needs nvidia-peermem or ibv_reg_dmabuf_mr"
        }
        ("rdma_resolve_route", libc::EINVAL) => "The address comes first: take ADDR_RESOLVED before you ask for the route",
        ("rdma_connect", libc::EINVAL) => "The route comes first: take ROUTE_RESOLVED before you connect, and connect once",
        ("rdma_accept" | "rdma_reject", libc::EINVAL) => {
            "Nobody waits for an answer at this id: answer the id that CONNECT_REQUEST brought, and once"
        }
        ("rdma_disconnect", libc::EINVAL) => "This id has no connection: it has one from ESTABLISHED on",
        (_, libc::EACCES | libc::EPERM) => {
            "You lack the right. Look at `ls -l /dev/infiniband`; ports below 1024 need root"
        }
        ("rdma_resolve_addr", libc::ENETUNREACH | libc::EHOSTUNREACH) => {
            "No route leads there: `ip route get ADDRESS` tells"
        }
        ("rdma_accept", libc::EPROTO) => {
            "A second RDMA device may sit on the same netdev and take the connection: `rdma link` lists them"
        }
        _ => "Its man page lists the errors; `rdma link` shows the devices, `rdma resource show` what is open",
    }
}

pub fn event_step(got: CmEventType, status: i32) -> &'static str {
    match (got, status) {
        (RDMA_CM_EVENT_REJECTED, CONSUMER_REJECT) => {
            "The server's program refused: its log says why. If it says nothing, its kernel did: does it listen on IPv6 \
             where you ask for IPv6?"
        }
        (RDMA_CM_EVENT_REJECTED, 8) => {
            "Start the server first, and give both sides the same port with -p (`rdma resource show cm_id` lists \
             listeners; `ss` does not know RDMA ports)"
        }
        // The status of iWARP is a negative errno.
        (RDMA_CM_EVENT_REJECTED, i32::MIN..=-1) => {
            "An iWARP device doesn't say why it refuses. If the server listens on [::] and you connect over IPv4, siw turns you \
             away: start the server with -a and its IPv4 address. Otherwise look at the server's log"
        }
        (RDMA_CM_EVENT_REJECTED, _) => "The peer's machine refused the connection: look at the server's log",
        (RDMA_CM_EVENT_ADDR_ERROR, _) => {
            "Nobody answers at that address: `ping` it, and check that the netdev on the way has an RDMA device (`rdma \
             link`)"
        }
        (RDMA_CM_EVENT_ROUTE_ERROR, _) => {
            "No RDMA path leads there: `rdma link` must show the link as ACTIVE on both sides"
        }
        (RDMA_CM_EVENT_UNREACHABLE, _) => {
            "The server's machine does not answer: is it up, does it have an RDMA device, does a firewall drop UDP 4791?"
        }
        (RDMA_CM_EVENT_DISCONNECTED, _) => "The other side hung up: its log says why",
        (RDMA_CM_EVENT_DEVICE_REMOVAL, _) => "The RDMA device is gone: `rdma link`, then `sudo tools/lab/softroce.sh up`",
        _ => "Look at the other side's log",
    }
}

fn completion_step(status: WcStatus) -> &'static str {
    match status {
        IBV_WC_WR_FLUSH_ERR => {
            "This is an echo: the QP went to the ERR state. Look for the first error, or a disconnect, before it. The peer may \
             have carried the request out: ask it before you post it again"
        }
        IBV_WC_REM_ACCESS_ERR => {
            "The peer's device refused the rkey, the address range or the permission: compare them with the metadata the \
             peer sent (a frequent slip is the lkey in place of the rkey). Region and QP must also share a protection domain"
        }
        IBV_WC_LOC_PROT_ERR => "Check the lkey, that the SGE lies inside its region, and the region's access flags",
        IBV_WC_LOC_LEN_ERR => {
            "Of a receive: the message is longer than it is. Of a send: longer than the device, or a datagram's MTU, allows"
        }
        IBV_WC_LOC_QP_OP_ERR => {
            "From SoftRoCE this means: the message is longer than the posted receive, or the lkey or the region's \
             LOCAL_WRITE is wrong; of a READ also that initiator_depth is 0"
        }
        IBV_WC_REM_OP_ERR => {
            "The peer's device could not place the message: look at the status that the peer's own receive ended with"
        }
        IBV_WC_RETRY_EXC_ERR => {
            "The peer's QP does not answer: is its program or machine gone, or its QP in ERR (look for its own first error)? Is a \
             cable or firewall in the way? Do number, PSN and address of the two QPs fit together? If short messages pass and \
             long ones do not, it is the MTU"
        }
        IBV_WC_RNR_RETRY_EXC_ERR => {
            "The peer had no receive posted: it must post one before it accepts. Do both sides run the same lesson with \
             the same --metadata?"
        },
        IBV_WC_REM_INV_REQ_ERR => {
            "The peer's device found the request invalid: longer than its receive, an operation its QP does not allow, more \
             READs and atomics at a time than agreed on, or another path MTU"
        }
        _ => "`man ibv_poll_cq` lists the statuses; look at the other side's log for its half of the story",
    }
}
