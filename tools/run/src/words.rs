//! What a packet does, in words.

use super::look::Sort;
use roce::aeth::{milliseconds, Syndrome};
use roce::cm::{self, req, Kind, Message};
use roce::icrc::Icrc;
use roce::opcode::Operation;
use roce::packet::Packet;
use roce::track::Membership;

/// What one packet does, for somebody who has not seen those before it.
pub fn summary(packet: &Packet, from_client: bool) -> String {
    [vec![short_name(packet)], details(packet, None, from_client)].concat().join("  ")
}

/// `1st`, `2nd`, `3rd`, as rules of the wire count.
pub fn ordinal(number: usize) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// The name in the lane: without the service where it is the usual one.
pub(super) fn short_name(packet: &Packet) -> String {
    match packet.cm() {
        Some(message) => format!("{} ({})", message.kind.short(), message.kind.name()),
        None => match packet.refusal() {
            Some(refusal) => refusal.into(),
            None if packet.opcode.operation == Operation::Unknown => {
                format!("Unknown opcode {:#04x}", packet.bth.opcode)
            }
            None => packet.name().trim_start_matches("RC ").into(),
        },
    }
}

pub(super) fn sort(packet: &Packet) -> Sort {
    match (packet.opcode.operation, packet.aeth().map(|aeth| aeth.verdict())) {
        _ if packet.cm().is_some() => Sort::Connection,
        (_, Some(Syndrome::Nak(_))) | (Operation::Congestion | Operation::Unknown, _) => Sort::Trouble,
        (_, Some(Syndrome::RnrNak { .. })) => Sort::Notable,
        (Operation::Send, _) => Sort::Send,
        (Operation::Write | Operation::AtomicWrite | Operation::Flush, _) => Sort::Write,
        (Operation::ReadRequest | Operation::ReadResponse, _) => Sort::Read,
        (Operation::CompareSwap | Operation::FetchAdd | Operation::AtomicAcknowledge, _) => Sort::Notable,
        (Operation::Acknowledge, _) => Sort::Acknowledge,
    }
}

/// What is to the right of the lane.
pub(super) fn details(packet: &Packet, seen: Option<Membership>, from_client: bool) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(seen.filter(|seen| seen.again).map(|_| "sent again".into()));
    match packet.cm() {
        Some(message) => cm_details(&message, from_client, &mut parts),
        None => data_details(packet, &mut parts),
    }
    match packet.icrc() {
        Icrc::Bad => parts.push("ICRC BAD".into()),
        Icrc::Cut => parts.push("cut by the snap length".into()),
        Icrc::Ok => {}
    }
    parts
}

pub(super) fn psn(packet: &Packet, seen: Option<Membership>) -> Option<String> {
    let counted = seen.and_then(|seen| seen.psn).map(|psn| format!("psn {psn:+}"));
    counted.or_else(|| packet.opcode.service.is_connected().then(|| format!("psn {} (absolute)", packet.bth.psn)))
}

fn data_details(packet: &Packet, parts: &mut Vec<String>) {
    parts.extend(length(packet));
    parts.extend(packet.remote().map(|remote| format!("va {:#x}  rkey {:#x}", remote.va, remote.r_key)));
    parts.extend(packet.atomic_operands().map(|(swap_add, compare)| match packet.opcode.operation {
        Operation::FetchAdd => format!("add {swap_add:#x}"),
        _ => format!("if {compare:#x} then {swap_add:#x}"),
    }));
    parts.extend(packet.atomic_original().map(|value| format!("was {value:#x}")));
    parts.extend(packet.immediate().map(|data| format!("imm {data:#010x}")));
    parts.extend(packet.invalidated_key().map(|key| format!("invalidates rkey {key:#x}")));
    parts.extend(packet.aeth().map(|aeth| match aeth.verdict() {
        Syndrome::Ack { credits: None } => format!("msn {}", aeth.msn),
        Syndrome::Ack { credits: Some(n) } => format!("msn {}  credits {n}", aeth.msn),
        Syndrome::RnrNak { timer_us } => {
            format!("msn {}  no receive posted: wait {} ms", aeth.msn, milliseconds(timer_us))
        }
        Syndrome::Nak(nak) => format!("msn {}  {nak}", aeth.msn),
        reserved => reserved.to_string(),
    }));
    parts.extend(packet.src_qp().map(|qp| format!("from qp {qp:#x} to qp {:#x}", packet.bth.dest_qp)));
}

/// Bytes of this packet, and of the whole message where it is larger; for a READ Request the bytes asked for.
fn length(packet: &Packet) -> Option<String> {
    let here = packet.payload_length();
    match (packet.opcode.operation, packet.dma_length()) {
        (Operation::Send | Operation::ReadResponse, _) | (Operation::Write, None) => Some(format!("len {here}")),
        (Operation::Write, Some(total)) if total as usize != here => Some(format!("len {here} of {total}")),
        (Operation::Write | Operation::AtomicWrite | Operation::Flush | Operation::ReadRequest, Some(total)) => {
            Some(format!("len {total}"))
        }
        _ => None,
    }
}

/// What a CM message says, and which state it implies for the queue pairs (IBTA 12.9).
fn cm_details(message: &Message, from_client: bool, parts: &mut Vec<String>) {
    let service =
        |service: cm::Service| service.port().map_or_else(|| service.to_string(), |port| format!("port {port}"));
    parts.extend(message.service().map(service));
    parts.extend(message.local_qpn().map(|qp| if qp == 0 { "no qp".into() } else { format!("qp {qp:#x}") }));
    parts.extend(message.reason().map(|reason| format!("reason {reason}: {}", cm::reject_reason(reason))));
    parts.extend(message.sidr_status().map(|status| format!("status {status}: {}", cm::sidr_status(status))));
    let mtu = req::PATH_MTU.read(message.body).filter(|_| message.kind == Kind::ConnectRequest);
    parts.extend(mtu.and_then(|code| cm::mtu_bytes(code as u8)).map(|bytes| format!("mtu {bytes}")));
    let side = if from_client { "client" } else { "server" };
    match message.kind {
        // A connection manager moves the QP before it answers: if there is one.
        Kind::ConnectReply if message.local_qpn() != Some(0) => parts.push(format!("{side} QP is in RTR or RTS")),
        Kind::ReadyToUse => parts.push("both QPs are in RTS".into()),
        Kind::DisconnectRequest => parts.push(format!("{side} QP leaves RTS")),
        _ => {}
    }
    let given = message.given_data().len();
    if given > 0 {
        parts.push(format!("private data of {given} bytes or more"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_that_names_no_queue_pair_implies_no_state() {
        let told = |body: [u8; 232]| {
            let mut parts = Vec::new();
            cm_details(&Message { kind: Kind::ConnectReply, transaction_id: 1, body: &body }, false, &mut parts);
            parts
        };
        assert_eq!(told([0; 232]), ["no qp"]);
        assert_eq!(told([1; 232])[1], "server QP is in RTR or RTS");
    }
}
