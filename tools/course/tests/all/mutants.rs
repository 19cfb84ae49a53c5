//! What a learner may get wrong in one line, and what she may write in another way: the judge of the hole itself says no to the one,
//! and yes to the other. All holes behind it are open, as they are when she writes it.

use crate::holes::{scratch, verdict};
use course::nic::copy::solution;
use course::nic::hole::Hole;
use course::project::Project;
use run::files::{read, write};

/// A hole, a piece of the project's own body, and what is there instead.
type Edit = (&'static str, &'static str, &'static str);

#[rustfmt::skip]
const WRONG: &[Edit] = &[
    ("14-1-since", "(self.0.wrapping_sub(other.0) << 8) as i32 >> 8", "-((other.0.wrapping_sub(self.0) << 8) as i32 >> 8)"),
    ("14-1-since", "(self.0.wrapping_sub(other.0) << 8) as i32 >> 8", "self.0 as i32 - other.0 as i32"),
    ("14-1-since", "(self.0.wrapping_sub(other.0) << 8) as i32 >> 8", "(self.0.wrapping_sub(other.0) << 9) as i32 >> 9"),
    ("14-2-put", "(u64::MAX >> (64 - field.bits))", "((1 << field.bits) - 1)"),
    ("14-2-put", ".iter_mut().rev()", ".iter_mut().rev().take(4)"),
    ("14-3-encode", "put(&mut bytes, &bth::P_KEY, DEFAULT_PARTITION);", ""),
    ("14-3-encode", "self.row().headers.iter().copied()", "self.row().headers.iter().rev().copied()"),
    ("14-3-encode", "bytes.resize(bytes.len() + pad, 0);", "bytes.resize(bytes.len() + pad, 0xff);"),
    ("14-3-encode", "bytes.extend_from_slice(&self.payload);", ""),
    ("14-4-headers", "bytes.extend(src_port.to_be_bytes()", "bytes.extend(ROCE_PORT.to_be_bytes()"),
    ("14-4-headers", ".chain(ROCE_PORT.to_be_bytes())", ".chain(src_port.to_be_bytes())"),
    ("14-4-headers", "octets(from).into_iter().chain(octets(to))", "octets(to).into_iter().chain(octets(from))"),
    ("14-4-headers", "from.octets().into_iter().chain(to.octets())", "to.octets().into_iter().chain(from.octets())"),
    ("14-4-headers", "0, 0x40, 0, HOPS, UDP", "0, 0, 0, HOPS, UDP"),
    ("14-4-headers", "udp_length[1], UDP, HOPS", "udp_length[1], HOPS, UDP"),
    ("14-5-icrc", "ip.get(size..udp)?", "&ip[..0]"),
    ("14-5-icrc", "v4[ONES + 1] = 0xff;", ""),
    ("14-5-icrc", "v4[ONES + 8] = 0xff;", ""),
    ("14-5-icrc", "v4[ONES + 10..ONES + 12].fill(0xff);", ""),
    ("14-5-icrc", "v6[ONES] |= 0x0f;", "v6[ONES] = 0xff;"),
    ("14-5-icrc", "v6[ONES + 1..ONES + 4].fill(0xff);", ""),
    ("14-5-icrc", "v6[ONES + 7] = 0xff;", ""),
    ("14-5-icrc", "transport[6..8].fill(0xff);", ""),
    ("14-5-icrc", "ip.get(udp..udp + TRANSPORT);", "Some(&ip[udp..udp + TRANSPORT]);"),
    ("15-1-asked", "c.peer == from && c.remote == remote && c.phase != Phase::Idle;", "false && c.peer == from;"),
    ("15-1-asked", "c.peer == from && c.remote == remote && c.phase != Phase::Idle;", "c.remote == remote && c.phase != Phase::Idle;"),
    ("15-1-asked", "c.peer == from && c.remote == remote && c.phase != Phase::Idle;", "c.peer == from && c.remote == remote;"),
    ("15-1-asked", "return connection.receive(mad, now, out);", "return;"),
    ("15-1-asked", "self.disconnect(old, now, out);", ""),
    ("15-1-asked", " && c.phase == Phase::Established;", ";"),
    ("15-1-asked", "mad.transaction_id(), 0, remote)", "mad.transaction_id(), remote, 0)"),
    ("15-1-asked", "let Some(owner) = listener.admit(out) else { return };", "let owner = listener.admit(out).unwrap_or(listener.owner);"),
    ("15-1-asked", "let Some(owner) = listener.admit(out) else { return };", "let Some(owner) = listener.admit(out) else { return refuse(INVALID_SERVICE_ID, out) };"),
    ("15-1-asked", "connection.enter(Phase::ReqReceived, now);", ""),
    ("15-1-asked", "connection.transaction_id = mad.transaction_id();", ""),
    ("15-1-asked", ".clamp(1, 5)", ".min(5)"),
    ("15-1-asked", ".clamp(1, 5)", ""),
    ("15-1-asked", "connection.param.retries = mad.get(&req::RETRY_COUNT) as u8;", ""),
    ("15-1-asked", "connection.param.rnr_retries = connection.attributes.rnr_retries;", ""),
    ("15-2-accept", "u64::from(rnr_retries & 7)", "7"),
    ("15-2-accept", "initiator_depth.into()", "responder_resources.into()"),
    ("15-2-accept", "responder_resources.into()", "initiator_depth.into()"),
    ("15-2-accept", "&rep::LOCAL_CA_GUID, guid", "&rep::LOCAL_CA_GUID, 0"),
    ("15-2-accept", ".with_private(private)", ""),
    ("15-2-accept", ".with(&rep::LOCAL_QPN, connection.qpn.into())", ""),
    ("15-2-accept", "self.expect(local, Phase::ReqReceived)?", "self.connections.get_mut(&local).ok_or(Errno::EINVAL)?"),
    ("15-3-table", "self.report(EventKind::ConnectResponse, 0, mad.private_data(), out);", "self.report(EventKind::ConnectResponse, 0, &[], out);"),
    ("15-3-table", "mad.get(&rej::REASON) as i32, mad.private_data(), out", "mad.get(&rej::REASON) as i32, &[], out"),
    ("15-3-table", "mad.get(&rej::REASON) as i32, mad.private_data(), out", "0, mad.private_data(), out"),
    ("15-3-table", "self.tell(question.mad.clone(), out);", "self.tell(self.message(Kind::ConnectReply), out);"),
    ("15-3-table", ".with(&mra::SERVICE_TIMEOUT, MRA_TIMEOUT.into())", ""),
    ("15-3-table", "self.transaction_id = mad.transaction_id();\n        self.turn(", "self.turn("),
    ("15-3-table", "self.transaction_id = mad.transaction_id();\n        self.tell(", "self.tell("),
    ("15-3-table", "Phase::DreqSent | Phase::TimeWait | Phase::Idle", "Phase::DreqSent | Phase::TimeWait"),
    ("15-3-table", "(Kind::ConnectReject, Phase::ReqReceived) => self.enter(Phase::Idle, now),", ""),
    ("15-3-table", "& 0x1f", "& 0x0f"),
    ("15-4-ready", "self.expect(local, Phase::RepReceived)?", "self.connections.get_mut(&local).ok_or(Errno::EINVAL)?"),
    ("15-4-ready", "connection.enter(Phase::Established, now);", ""),
    ("15-5-goodbye", "connection.enter(Phase::TimeWait, now);", ""),
    ("15-5-goodbye", "connection.enter(Phase::TimeWait, now);", "connection.enter(Phase::Idle, now);"),
    ("15-5-goodbye", "Phase::Established | Phase::RepSent | Phase::RepReceived", "Phase::Established"),
    ("15-5-goodbye", "connection.ask(Phase::DreqSent, mad, now, out);", "connection.enter(Phase::DreqSent, now); connection.tell(mad, out);"),
    ("15-5-goodbye", "wrapping_add(1 << 32)", "wrapping_add(1)"),
    ("15-5-goodbye", "_ => {}", "_ => connection.enter(Phase::TimeWait, now),"),
    ("15-6-again", "-i32::from(Errno::ETIMEDOUT)", "0"),
    ("15-6-again", "Phase::DreqSent => (Phase::TimeWait, EventKind::Disconnected),", ""),
    ("15-6-again", "self.turn(Phase::Idle, EventKind::TimewaitExit, now, out);", "self.enter(Phase::Idle, now);"),
    ("15-6-again", "self.enter(next, now);", ""),
    ("15-6-again", "question.again_at <= now", "question.again_at < now"),
    ("15-6-again", "if self.rest_until.is_some_and(|time| time <= now) {", "if self.rest_until.is_some() {"),
    ("16-1-moves", "Some((needed, ACCESS_FLAGS | PKEY_INDEX))", "Some((needed, ACCESS_FLAGS))"),
    ("16-1-moves", "(Rts, Sqd) => Some((0, EN_SQD_ASYNC_NOTIFY)),", "(Rts, Sqd) => Some((0, 0)),"),
    ("16-1-moves", "(Init, Init) => Some((0, PKEY_INDEX | PORT | ACCESS_FLAGS)),", ""),
    ("16-2-send", "self.timer.is_none()", "true"),
    ("16-2-send", "self.send = next;\n", ""),
    ("16-2-send", "Work::Datagram(_) if request.length > qp.attributes.mtu => {}", "Work::Datagram(_) if request.length > qp.attributes.mtu => return,"),
    ("16-2-send", "_ => qp.send(packet, ctx),", "_ => { qp.send(packet.clone(), ctx); qp.send(packet, ctx) }"),
    ("16-3-packet", "immediate: immediate.unwrap_or_default()", "immediate: 0"),
    ("16-3-packet", "Work::SendInvalidate(key) => (None, Some(key)),", "Work::SendInvalidate(key) => (request.immediate, Some(key)),"),
    ("16-3-packet", "invalidate: invalidate.unwrap_or_default()", "invalidate: 0"),
    ("16-3-packet", "(operation == Operation::Send || extra.is_some())", "operation == Operation::Send"),
    ("16-3-packet", "empty.ack_request && (ends || index % ASK_EVERY == ASK_EVERY - 1)", "ends || index % ASK_EVERY == ASK_EVERY - 1"),
    ("16-3-packet", "index % ASK_EVERY == ASK_EVERY - 1", "index % 65 == 64"),
    ("16-3-packet", "index % ASK_EVERY == ASK_EVERY - 1", "index == ASK_EVERY - 1"),
    ("16-4-receive", "0 => self.nak_sent = false,", "0 => {}"),
    ("16-4-receive", "Operation::AtomicWrite => self.atomic_write(&packet, qp, ctx),", ""),
    ("16-4-receive", "Operation::Flush => self.flush(&packet, qp, ctx),", ""),
    ("16-4-receive", "1.. => return self.gap(packet.psn, qp, ctx),", "1.. => return Ok(()),"),
    ("16-4-receive", "_ => return self.duplicate(packet, qp, ctx),", "_ => return Ok(()),"),
    ("16-4-receive", "Err(nak) => self.refuse(packet.psn, packet.row().name, &nak, qp, ctx),", "Err(_) => Ok(()),"),
    ("16-5-place", "if sum > Qp::LONGEST.into() {", "if false {"),
    ("16-5-place", "u64::from(at) + packet.payload.len() as u64", "packet.payload.len() as u64"),
    ("16-5-place", ".map_err(Nak::OwnMemory)", ".or(Ok(()))"),
    ("16-5-place", "if sum > room {", "if sum >= room {"),
    ("16-6-ack", "self.progress(qp, ctx);", ""),
    ("16-6-ack", "psn.since(front.last) < 0", "psn.since(front.last) <= 0"),
    ("16-6-ack", "self.unacked = psn.plus(1);", "self.unacked = psn;"),
    ("16-6-ack", "if self.unacked != before {", "if self.unacked == before {"),
    ("16-7-bell", "Armed::No => false,", "Armed::No => true,"),
    ("16-7-bell", "Armed::Any => true,", "Armed::Any => completion.status == Status::Success,"),
    ("17-1-gates", "if claim.length == 0 {\n    return Ok(None);\n}\n", ""),
    ("17-1-gates", "if region.pd != claim.pd {", "if false {"),
    ("17-1-gates", "if !region.access.allow(claim.needed) {", "if region.access.0 & claim.needed.0 == 0 {"),
    ("17-1-gates", "end > region.length", "end >= region.length"),
    ("17-1-gates", "return Err(Refusal::Pd);", "return Err(Refusal::Access);"),
    ("17-2-length", "Part::Only => length <= mtu,", "Part::Only => (1..=mtu).contains(&length),"),
    ("17-2-length", "(1..=mtu).contains(&length)", "(1..mtu).contains(&length)"),
    ("17-2-length", "(1..=mtu).contains(&length)", "length >= 1"),
    ("17-3-write", "if reth.length > Qp::LONGEST {", "if reth.length >= Qp::LONGEST {"),
    ("17-3-write", "if reth.length > Qp::LONGEST {", "if false {"),
    ("17-3-write", ".and_then(|()| ctx.memory.write(here, &packet.payload))", ""),
    ("17-4-read", "let payload = payload.map_err(|refusal| Nak::Memory { reth, refusal })?;", "let payload = payload.or_else(|refusal| if index == 0 { Err(Nak::Memory { reth, refusal }) } else { Ok(Vec::new()) })?;"),
    ("17-4-read", "let payload = payload.map_err(|refusal| Nak::Memory { reth, refusal })?;", "let payload = payload.or_else(|refusal| if index == 0 { Err(Nak::Memory { reth, refusal }) } else { Ok(vec![0; here.length as usize]) })?;"),
    ("17-4-read", "aeth: Aeth { syndrome: Syndrome::ACK.byte(), msn },", ""),
    ("17-4-read", "mtu.min(reth.length - offset)", "mtu.min(reth.length)"),
    ("17-5-bytes", "self.progress(qp, ctx);", ""),
    ("17-5-bytes", "packet.original.to_ne_bytes()", "packet.original.to_be_bytes()"),
    ("17-5-bytes", "if wqe.request.work.is_atomic() { &number[..] } else { &packet.payload }", "&packet.payload"),
    ("17-5-bytes", "if wqe.request.work.is_atomic() { &number[..] } else { &packet.payload }", "&number[..]"),
    ("17-5-bytes", "Status::BadRespErr", "Status::RemOpErr"),
    ("17-5-bytes", "return Err(self.fail(Status::LocProtErr, qp, ctx));", ""),
    ("17-5-bytes", "self.unacked = psn.plus(1);", ""),
    ("17-5-bytes", ".filter(|_| psn == self.unacked)", ""),
    ("17-5-bytes", "Local::Inline(_) => Ok(()),", "Local::Inline(_) => Err(crate::memory::Refusal::Bounds),"),
    ("18-1-back", "self.send = self.unacked;", "self.send = self.begun.front().map_or(self.unacked, |wqe| wqe.first);"),
    ("18-1-back", "self.send = self.unacked;", "self.send = self.send.before();"),
    ("18-1-back", "if !self.went_back {", "if true {"),
    ("18-2-attempts", "self.retries -= 1;", ""),
    ("18-2-attempts", "self.retries -= 1;", "self.rnr_retries -= 1;"),
    ("18-3-silence", "self.rnr_until.is_some_and(|time| time <= ctx.now)", "false"),
    ("18-3-silence", "self.rnr_until.is_some_and(|time| time <= ctx.now)", "true"),
    ("18-3-silence", "self.rnr_until.is_some_and(|time| time <= ctx.now)", "self.rnr_until.is_some_and(|time| time < ctx.now)"),
    ("18-3-silence", "self.try_again(qp, ctx)?;", "self.go_back();"),
    ("18-4-progress", "self.rnr_retries = qp.attributes.rnr_retries;", ""),
    ("18-4-progress", "if self.send.since(self.unacked) < 0 {", "if false {"),
    ("18-4-progress", "if self.send.since(self.unacked) < 0 {", "if true {"),
    ("18-4-progress", "if self.next != self.unacked {", "if true {"),
    ("18-5-not-ready", "if self.unacked != psn {", "if false {"),
    ("18-5-not-ready", "self.rnr_retries -= 1;", ""),
    ("18-5-not-ready", "Some(ctx.now + wait)", "Some(ctx.now)"),
    ("18-5-not-ready", "Status::RnrRetryExcErr", "Status::RetryExcErr"),
    ("18-6-gap", "std::mem::replace(&mut self.nak_sent, true)", "false"),
    ("18-6-gap", "std::mem::replace(&mut self.nak_sent, true)", "true"),
    ("18-7-twice", "self.queue_ack(self.expected.before(), Syndrome::ACK, qp);", "self.queue_ack(psn, Syndrome::ACK, qp);"),
    ("18-7-twice", "Operation::CompareSwap | Operation::FetchAdd | Operation::AtomicWrite | Operation::Flush => {", "Operation::AtomicWrite | Operation::Flush => {"),
    ("18-7-twice", "Operation::CompareSwap | Operation::FetchAdd | Operation::AtomicWrite | Operation::Flush => {", "Operation::CompareSwap | Operation::FetchAdd => {"),
    ("18-8-reads", "(0..packets(read.reth.length, mtu) as i32)", "(0..=packets(read.reth.length, mtu) as i32)"),
    ("18-8-reads", "self.queue_read(reth, first, true);", "self.responses.push_back(Response::Read(Read { reth, first, index: 0, msn: self.msn, again: true }));"),
    ("19-1-verdict", "(aeth::Nak::RemoteAccess, Fault::Peer(AsyncEvent::QpAccessError))", "(aeth::Nak::RemoteAccess, Fault::Peer(AsyncEvent::QpRequestError))"),
    ("19-1-verdict", "Nak::Invalidate(..) => return (Syndrome::ACK, Fault::Receive(Status::RemInvReqErr)),", ""),
    ("19-1-verdict", "_ => (aeth::Nak::InvalidRequest, Fault::Peer(AsyncEvent::QpRequestError)),", "_ => (aeth::Nak::InvalidRequest, Fault::Peer(AsyncEvent::QpFatal)),"),
    ("19-1-verdict", "_ => (aeth::Nak::InvalidRequest, Fault::Peer(AsyncEvent::QpRequestError)),", "Nak::Sequence => (aeth::Nak::InvalidRequest, Fault::Peer(AsyncEvent::QpRequestError)),\n_ => (aeth::Nak::RemoteOperational, Fault::Peer(AsyncEvent::QpRequestError)),"),
    ("19-1-verdict", "Syndrome::rnr_nak(*timer)", "Syndrome::rnr_nak(*timer + 1)"),
    ("19-1-verdict", "Fault::Receive(Status::LocLenErr)", "Fault::Receive(Status::LocProtErr)"),
    ("19-2-refused", "return self.try_again(qp, ctx);", "self.go_back();\nreturn Ok(());"),
    ("19-2-refused", "if self.unacked != psn {", "if false {"),
    ("19-2-refused", "Nak::InvalidRequest => Status::RemInvReqErr,", ""),
    ("19-2-refused", "_ => Status::RemOpErr,", "_ => Status::RemAccessErr,"),
    ("19-3-flush", "receives.extend(std::iter::from_fn(|| self.receives.take()));", ""),
    ("19-3-flush", "receives.extend(std::iter::from_fn(|| self.receives.take()));", "receives.extend(self.receives.take());"),
    ("19-3-flush", "qp.complete_unfilled(request, Status::WrFlushErr, ctx)", "qp.complete_unfilled(request, Status::Success, ctx)"),
    ("19-3-flush", "let mut receives: Vec<_> = receive.into_iter().collect();\nreceives.extend(std::iter::from_fn(|| self.receives.take()));", "let mut receives: Vec<_> = std::iter::from_fn(|| self.receives.take()).collect();\nreceives.extend(receive);"),
    ("19-4-atomic", "self.carried_out(packet.psn, original, qp);", "self.carried_out(packet.psn, 0, qp);"),
    ("19-4-atomic", "self.carried_out(packet.psn, original, qp);", "self.advance(packet.psn.plus(1), true);"),
    ("19-4-atomic", "self.queue_atomic_response(packet.psn, original, qp);", "self.queue_atomic_response(packet.psn, asked.swap_add, qp);"),
    ("19-4-atomic", "old.wrapping_add(asked.swap_add)", "old + asked.swap_add"),
    ("19-4-atomic", "(old == asked.compare).then_some(asked.swap_add)", "(old == asked.compare).then_some(asked.compare)"),
    ("19-4-atomic", "self.may_read(packet, Access::REMOTE_ATOMIC, qp)?;", ""),
    ("19-4-atomic", "let original = changed.map_err(|refusal| Nak::Memory { reth, refusal })?;", "let original = changed.unwrap_or_default();"),
    ("19-5-once", "None => \"dropped: too long ago\",", "None => { self.queue_atomic_response(packet.psn, 0, qp); \"answered\" }"),
    ("19-5-once", "self.atomics.iter().find(|(done, _)| *done == packet.psn)", "self.atomics.front()"),
];

/// Those that nobody can see before a later hole is written, and which one that is.
#[rustfmt::skip]
const LATER: &[(Edit, &str)] = &[
    (("16-2-send", "if next.since(self.next) > 0 {", "if true {"), "18-1-back"),
    (("16-6-ack", "self.go_back();", ""), "18-1-back"),
    (("16-5-place", "ctx.shared.as_ref().map_or(qp.pd, |shared| shared.pd())", "qp.pd"), "17-1-gates"),
    (("17-5-bytes", "self.ack_received(psn.before(), qp, ctx);", "self.ack_received(psn, qp, ctx);"), "18-1-back"),
    (("17-3-write", "Nak::Memory { reth, refusal }", "{ let _ = refusal; Nak::Announced { arrived, announced: reth.length } }"), "19-1-verdict"),
];

/// What is right as well. Without a piece, it's the whole body.
#[rustfmt::skip]
const RIGHT: &[Edit] = &[
    ("14-1-since", "", "let ahead = self.0.wrapping_sub(other.0) & MASK;\nif ahead < 1 << 23 { ahead as i32 } else { ahead as i32 - (1 << 24) }"),
    ("14-2-put", "", "for index in 0..field.bits {\n    let at = field.bit + index;\n    header[at / 8] |= ((value >> (field.bits - 1 - index) & 1) as u8) << (7 - at % 8);\n}"),
    ("14-3-encode", "bytes.resize(bytes.len() + pad, 0);", "while bytes.len() % 4 != 0 {\n    bytes.push(0);\n}"),
    ("14-4-headers", "let sum = (sum >> 16) + (sum & 0xffff);\n        let sum = (sum >> 16) + (sum & 0xffff); // The first one may carry.", "let mut sum = sum;\nwhile sum > 0xffff {\n    sum = (sum >> 16) + (sum & 0xffff);\n}"),
    ("14-5-icrc", "", "if ip.len() < udp + 20 {\n    return None;\n}\nlet mut bytes = ip.to_vec();\nif ip[0] >> 4 == 4 {\n    for at in [1, 8, 10, 11] {\n        bytes[at] = 0xff;\n    }\n} else {\n    bytes[0] |= 0x0f;\n    for at in [1, 2, 3, 7] {\n        bytes[at] = 0xff;\n    }\n}\nfor at in [6, 7, 12] {\n    bytes[udp + at] = 0xff;\n}\nSome(crc32fast::hash(&[&[0xff; 8][..], &bytes].concat()))"),
    ("15-3-table", "(Kind::ReadyToUse, Phase::RepSent) => {\n        self.turn(Phase::Established, EventKind::Established, now, out);", "(Kind::ReadyToUse, Phase::RepSent) => {\n        self.enter(Phase::Established, now);\n        self.report(EventKind::Established, 0, &[], out);"),
    ("15-4-ready", "connection.enter(Phase::Established, now);\nconnection.tell(connection.message(Kind::ReadyToUse), out);", "let mad = connection.message(Kind::ReadyToUse);\nconnection.tell(mad, out);\nconnection.enter(Phase::Established, now);"),
    ("16-3-packet", "index % ASK_EVERY == ASK_EVERY - 1", "true"),
    ("16-3-packet", "index % ASK_EVERY == ASK_EVERY - 1", "index % 8 == 7"),
    ("16-3-packet", "index % ASK_EVERY == ASK_EVERY - 1", "index % 32 == 31"),
    ("16-3-packet", "index % ASK_EVERY == ASK_EVERY - 1", "index % 64 == 63"),
    // An ACK that nobody asked for.
    ("16-4-receive", "Ok(completes) => self.answer(completes, qp, ctx),", "Ok(completes) => {\n    if !packet.ack_request && matches!(packet.row().operation, Operation::Send | Operation::Write) {\n        self.queue_ack(packet.psn, Syndrome::ACK, qp);\n    }\n    self.answer(completes, qp, ctx)\n}"),
    ("16-7-bell", "", "let rings = self.0 == Armed::Any\n    || self.0 == Armed::Solicited && (completion.solicited || completion.status != Status::Success);\nself.0 = if rings { Armed::No } else { self.0 };\nrings"),
    ("17-1-gates", "claim.address.checked_sub(region.va).ok_or(Refusal::Bounds)?", "claim.address.wrapping_sub(region.va)"),
    ("17-2-length", "", "let mtu = mtu as usize;\nlet is_wrong = match part {\n    Part::First | Part::Middle => length != mtu,\n    Part::Last => length == 0 || length > mtu,\n    Part::Only => length > mtu,\n};\nif is_wrong { Err(Nak::Payload(length)) } else { Ok(()) }"),
    ("18-1-back", "", "if self.went_back {\n    return;\n}\nself.send = self.unacked;\nself.went_back = true;"),
    // Whoever repeats a packet is told how far we are, asked or not.
    ("18-7-twice", "_ if packet.ack_request => {", "_ if packet.psn == packet.psn => {"),
    ("19-3-flush", "sends.iter().for_each(|request| qp.complete_send(request, Status::WrFlushErr, ctx));\nreceives.iter().for_each(|request| qp.complete_unfilled(request, Status::WrFlushErr, ctx));", "receives.iter().for_each(|request| qp.complete_unfilled(request, Status::WrFlushErr, ctx));\nsends.iter().for_each(|request| qp.complete_send(request, Status::WrFlushErr, ctx));"),
    ("19-5-once", "self.atomics.iter().find(", "self.atomics.iter().rev().find("),
];

/// What the body of hole 14-1 does besides giving the right answer, and what is said of it. One that ends the judge, or shuts its mouth,
/// fills no hole.
const ENDS: &[(&str, &str, &str)] = &[
    ("exits", "std::process::exit(0)", "It ends the judge's process, with exit status 0, before everything was looked at."),
    ("says so itself", "println!(\" right\"); std::process::exit(0)", "It ends the judge's process, with exit status 0"),
    ("exits with 2", "std::process::exit(2)", "It ends the judge's process, with exit status 2"),
    ("aborts", "std::process::abort()", "It crashes: the judge was ended by signal 6"),
    ("panics", "panic!(\"mine\")", "panicked at nic/src/psn.rs"),
    ("overflows the stack", "fn deep(number: u64) -> u64 { deep(number + 1) + 1 } deep(0)", "has overflowed its stack"),
    ("eats memory", "let mut all = Vec::new(); loop { all.push(vec![0u8; 1 << 24]) }", "memory allocation of"),
    ("prints without end", "loop { println!(\"x\") }", "It did not end within 5 seconds: something goes in circles."),
    ("closes standard output", "static ONCE: std::sync::Once = std::sync::Once::new();\nONCE.call_once(|| drop(unsafe { <std::fs::File as std::os::fd::FromRawFd>::from_raw_fd(1) }))", "It ends the judge's process"),
];

/// The project's own body, changed.
fn changed(right: &str, (hole, from, to): &Edit) -> String {
    if from.is_empty() {
        return (*to).to_owned();
    }
    let right = dedented(right);
    assert_eq!(right.matches(from).count(), 1, "{hole}: `{from}` has to be there once:\n{right}");
    right.replacen(from, to, 1)
}

/// A body as it is in a page, without the indentation of its function.
fn dedented(body: &str) -> String {
    let indent = body.lines().filter(|line| !line.is_empty()).map(|line| line.len() - line.trim_start().len()).min();
    body.lines().map(|line| line.get(indent.unwrap_or(0)..).unwrap_or_default().to_owned() + "\n").collect()
}

/// Fills hole after hole with the project's own body. Each of these edits is tried, and judged by a hole, when that one has its turn. Gives
/// those with another verdict; and the project's own bodies, if they aren't right at that time.
fn otherwise(folder: &str, edits: &[(Edit, &str)], is_right: bool) -> Vec<String> {
    let project = Project::find().unwrap();
    let (mine, holes) = (scratch(&project, folder), Hole::all(&project).unwrap());
    mine.lay_out(&project, &holes).unwrap();
    let mut otherwise = Vec::new();
    for hole in &holes {
        mine.fill(hole, &solution(&project, hole).unwrap()).unwrap();
        let edits: Vec<&Edit> =
            edits.iter().filter(|(_, judge)| hole.name.to_string() == *judge).map(|(edit, _)| edit).collect();
        if !edits.is_empty() && !verdict(&project, &mine, hole).is_right {
            otherwise.push(format!("{}: the project's own body", hole.name));
        }
        for edit in edits {
            let of_edit = holes.iter().find(|hole| hole.name.to_string() == edit.0).unwrap();
            let right = solution(&project, of_edit).unwrap();
            mine.fill(of_edit, &changed(&right, edit)).unwrap();
            let verdict = verdict(&project, &mine, hole);
            if verdict.is_right != is_right {
                otherwise.push(format!("{edit:?}: {}", verdict.seen));
            }
            mine.fill(of_edit, &right).unwrap();
        }
    }
    otherwise
}

fn by_its_own(edits: &[Edit]) -> Vec<(Edit, &'static str)> {
    edits.iter().map(|edit| (*edit, edit.0)).collect()
}

#[test]
fn each_edit_fits_the_projects_own_body_of_today() {
    let project = Project::find().unwrap();
    let holes = Hole::all(&project).unwrap();
    for edit in WRONG.iter().chain(RIGHT).chain(LATER.iter().map(|(edit, _)| edit)) {
        let hole = holes.iter().find(|hole| hole.name.to_string() == edit.0).unwrap();
        changed(&solution(&project, hole).unwrap(), edit);
    }
}

#[test]
#[ignore = "takes long: make test-long group=course"]
fn a_fault_of_one_line_is_noticed_by_the_judge_of_its_own_hole() {
    let unnoticed = otherwise("test-of-faults", &by_its_own(WRONG), false);
    assert!(unnoticed.is_empty(), "{} of {}: {unnoticed:#?}", unnoticed.len(), WRONG.len());
}

#[test]
#[ignore = "takes long: make test-long group=course"]
fn a_fault_that_shows_later_is_noticed_then() {
    let unnoticed = otherwise("test-of-later-faults", LATER, false);
    assert!(unnoticed.is_empty(), "{unnoticed:#?}");
}

#[test]
#[ignore = "takes long: make test-long group=course"]
fn a_right_body_is_right_however_it_is_written() {
    let refused = otherwise("test-of-right-bodies", &by_its_own(RIGHT), true);
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn a_body_that_ends_the_judge_or_silences_it_fills_no_hole() {
    let project = Project::find().unwrap();
    let (mine, holes) = (scratch(&project, "test-of-ends"), Hole::all(&project).unwrap());
    mine.lay_out(&project, &holes).unwrap();
    let (hole, does, lib) = (&holes[0], mine.0.folder.join("does"), mine.0.folder.join("nic/src/lib.rs"));
    write(&lib, read(&lib).unwrap().replace("#![forbid(unsafe_code)]", "")).unwrap();
    // One program for all of them: a file says which one it is.
    let arms: String =
        ENDS.iter().map(|(what, body, _)| format!("    Ok({what:?}) => {{\n        {body};\n    }}\n")).collect();
    let right = dedented(&solution(&project, hole).unwrap());
    let body = format!("match std::fs::read_to_string({does:?}).as_deref() {{\n{arms}    _ => {{}}\n}}\n{right}");
    mine.fill(hole, &body).unwrap();
    assert!(verdict(&project, &mine, hole).is_right, "it does nothing wrong as yet");
    for (what, _, said) in ENDS {
        write(&does, what).unwrap();
        let verdict = verdict(&project, &mine, hole);
        assert!(!verdict.is_right && verdict.seen.contains(said), "{what}: {verdict:#?}");
        assert!(verdict.seen.len() < 1 << 20, "{what}: {} bytes", verdict.seen.len());
    }
}
