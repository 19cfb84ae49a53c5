//! `rdma_cm_event`: what happened (man 3 rdma_get_cm_event, rdma_ack_cm_event).
//!
//! The library owns the event, its private data included, and lends it to you until you acknowledge it:
//! `rdma_ack_cm_event` frees both. [`CmEvent::private_data`] therefore borrows from the event, and [`CmEvent::ack`]
//! consumes it: copy before the ack, or it does not compile. Drop acks too, because an event that is never acked makes
//! `rdma_destroy_id` wait for ever.

use rdma_sys::{rdma_ack_cm_event, rdma_cm_event, rdma_ud_param};

use super::conn_param::ConnParam;
use super::event_channel::EventChannel;
use super::id::CmId;
use super::{CmEventType, RDMA_CM_EVENT_CONNECT_REQUEST};
use crate::error::{event_step, status_text, Error, Kind};
use crate::{info, slow};

/// An event that has been taken and is not acknowledged yet.
pub struct CmEvent {
    raw: *mut rdma_cm_event,
    /// `event->id`.
    id: CmId,
    /// The id that waits for the ack before it can be destroyed: `event->listen_id` for a connect request, else the same
    /// as `id`.
    owner: CmId,
}

impl CmEvent {
    /// Wraps an event that `rdma_get_cm_event` has just returned from `channel`.
    #[track_caller]
    pub(super) fn new(raw: *mut rdma_cm_event, channel: &EventChannel) -> Self {
        // SAFETY: the event is valid until it is acked, and so are the ids that it names: destroying an id waits for
        // the ack of its events, and only ids made by CmId are on the channel.
        let (id, owner) = unsafe {
            match CmEventType((*raw).event) {
                // The id of a connect request is new. It has its listener's context, and nobody owns it yet.
                RDMA_CM_EVENT_CONNECT_REQUEST => {
                    (CmId::adopt((*raw).id, channel), CmId::from_context((*raw).listen_id))
                }
                _ => (CmId::from_context((*raw).id), CmId::from_context((*raw).id)),
            }
        };
        owner.count_unacked(1);
        let event = Self { raw, id, owner };
        info!("CM event: {} status={}", short_name(event.event()), status_text(event.event(), event.status()));
        event
    }

    /// Which event: one of the `RDMA_CM_EVENT_*` constants, or a number that this program does not know.
    pub fn event(&self) -> CmEventType {
        // SAFETY: the event is valid until it is acked.
        CmEventType(unsafe { (*self.raw).event })
    }

    /// 0; or a negative errno; or, in a REJECTED event, the peer's reject reason.
    pub fn status(&self) -> i32 {
        // SAFETY: the event is valid until it is acked.
        unsafe { (*self.raw).status }
    }

    /// `event->id`. In a connect request this is the client's new id, and yours to keep: it is destroyed when its last
    /// owner drops it. In every other event it is the id that you already have.
    pub fn id(&self) -> CmId {
        self.id.clone()
    }

    /// The private data that the peer sent along, padded with zeroes by the wire format: 56 bytes in a connect request,
    /// 196 in ESTABLISHED on the client, 148 in REJECTED, whatever was sent. With datagrams: 180 in a connect request, 136 in
    /// ESTABLISHED.
    pub fn private_data(&self) -> &[u8] {
        // For a join's event that's what its caller has passed, which is nothing.
        // SAFETY: `param.conn` is the member in use, or `param.ud`, whose private data are asked for first. The pointer is NULL
        // or covers that many bytes, which live, unchanged, until the ack; the result borrows from self.
        unsafe {
            let conn = &(*self.raw).param.conn;
            let (data, len) = match self.ud() {
                Some(ud) => (ud.private_data, ud.private_data_len),
                None => (conn.private_data, conn.private_data_len),
            };
            match data.is_null() {
                true => &[],
                false => std::slice::from_raw_parts(data.cast(), len.into()),
            }
        }
    }

    /// `event->param.ud`, if the id is for datagrams.
    pub(crate) fn ud(&self) -> Option<&rdma_ud_param> {
        // SAFETY: the event is valid until it is acked; `param.ud` is the member in use if the id is for datagrams.
        self.owner.is_datagrams().then(|| unsafe { &(*self.raw).param.ud })
    }

    /// `event->param.conn`: in a connect request what the client asks for, seen from this side: `responder_resources` is how
    /// many READs of the client this side may answer, `initiator_depth` how many it may have under way. See
    /// [`ConnParam::clamped_to`]. For datagrams all of it is empty.
    pub fn conn_param(&self) -> ConnParam {
        match self.ud() {
            Some(_) => ConnParam::default(),
            // SAFETY: the id is for connections, for which `param.conn` is the member in use.
            None => ConnParam::from_c(unsafe { &(*self.raw).param.conn }),
        }
    }

    /// The error of a lesson that waited for the event `wanted` and got this one. Acknowledges it.
    pub fn into_error(self, wanted: CmEventType) -> Error {
        let private_data = self.private_data().to_vec();
        Error::Event { wanted, got: self.event(), status: self.status(), private_data }
    }

    /// The error of a lesson that waited for something else, a completion, and got this event. Acknowledges it.
    pub fn instead_of(self, awaited: &str) -> Error {
        let what = format!("{} instead of {awaited}", self.event());
        Error::of(Kind::PeerGone, what, event_step(self.event(), self.status()))
    }

    /// `rdma_ack_cm_event`: gives the event back. Its private data is gone after this.
    #[track_caller]
    pub fn ack(mut self) {
        self.give_back();
    }

    #[track_caller]
    fn give_back(&mut self) {
        slow!("rdma_ack_cm_event");
        // SAFETY: from rdma_get_cm_event, and acked nowhere else: it is ours only once. The ids are released after this, when
        // the fields are dropped: in the other order rdma_destroy_id would wait for this very ack.
        unsafe { rdma_ack_cm_event(std::mem::replace(&mut self.raw, std::ptr::null_mut())) };
        self.owner.count_unacked(-1);
    }
}

impl Drop for CmEvent {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            self.give_back();
        }
    }
}

/// The name as the log prints it: ESTABLISHED for RDMA_CM_EVENT_ESTABLISHED.
pub(super) fn short_name(event: CmEventType) -> String {
    event.to_string().replace("RDMA_CM_EVENT_", "")
}

#[cfg(test)]
mod tests {
    use super::{short_name, CmEventType};

    #[test]
    fn events_have_names_and_unknown_ones_a_number() {
        assert_eq!(CmEventType(9).to_string(), "RDMA_CM_EVENT_ESTABLISHED");
        assert_eq!(short_name(CmEventType(9)), "ESTABLISHED");
        assert_eq!(CmEventType(4711).to_string(), "CM event number 4711");
    }
}
