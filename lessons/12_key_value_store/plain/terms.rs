//! What both sides ask of a connection, and what there is room for.

use common::{ConnParam, QpCap};

/// How many clients there is room for.
pub const PLACES: usize = 8;
/// How many may wait to be looked at, as in listen(2).
pub const BACKLOG: i32 = 16;
/// Receives in the queue that all clients share. A client has one request under way at a time.
pub const RECEIVES: usize = 2 * PLACES;
/// Room in each queue of a QP: a SEND, READ or atomic, and the answer to it; twice, as a completion may wait to be polled.
pub const QUEUE: QpCap = QpCap { max_send_wr: 2, max_recv_wr: 2, ..QpCap::SMALL };
/// How long the device waits for an ACK before it sends again, and how often: 4.096 µs × 2^17 = 0.54 s, six times.
pub const ACK_TIMEOUT: u8 = 17;
const RETRIES: u8 = 6;

/// What we ask for, or accept at most: one READ or atomic under way at a time.
pub const CONN_PARAM: ConnParam = ConnParam {
    private_data: Vec::new(),
    responder_resources: 1,
    initiator_depth: 1,
    retry_count: RETRIES,
    rnr_retry_count: RETRIES,
};
