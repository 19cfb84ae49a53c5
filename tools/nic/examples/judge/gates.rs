//! Lesson 17: who may reach which memory, asked of claims on it.

use crate::came;
use crate::end::{ready, ALL, SIZE};
use crate::situation::request;
use crate::strangers::NO_KEY;
use crate::Verdict;
use nic::memory::{Access, Bind, Claim, Memory, Refusal, Region, Sge, WindowKind};
use nic::packet::{Packet, Reth};
use nic::work::ReceiveRequest;
use pair::end::shown;
use pair::end::PD_OF_SHARED;
use pair::{attributes, Buffer, PD};
use roce::opcode::{Operation, Part, Service};

/// The region that claims are about: so many bytes, by these addresses.
const LENGTH: u64 = 100;
const VA: u64 = 1 << 40;
/// The queue pair that its window is bound for.
const QP: u32 = 17;

/// Who reaches what.
pub fn gates() -> Verdict {
    let mut memory = Memory::default();
    let rights = Access(Access::LOCAL_WRITE.0 | Access::REMOTE_READ.0 | Access::MW_BIND.0);
    let buffer = Buffer::new(&mut memory, 1, LENGTH as usize, rights);
    // Requests call its bytes by other addresses than its program.
    let region = memory.get(buffer.key).cloned();
    region.map(|region| memory.replace(buffer.key, Region { va: VA, ..region }));
    let window = memory.allocate_window(WindowKind::Two, PD, 1);
    let bind = Bind { window, next: 2, region: buffer.key, address: VA, length: LENGTH, access: Access::REMOTE_READ };
    memory.bind(bind, QP, PD).map_err(|refusal| format!("a window cannot be bound: {refusal}"))?;
    // Zero based: requests call its first byte 0.
    let zero = Buffer::new(&mut memory, 2, LENGTH as usize, rights);
    let region = memory.get(zero.key).cloned();
    region.map(|region| memory.replace(zero.key, Region { va: 0, ..region }));
    let claims = claims(buffer.key, window & !0xff | 2, zero.key);
    for (what, claim, wanted) in &claims {
        let word = |answer: &Result<(), Refusal>| answer.map_or_else(|refusal| refusal.to_string(), |()| "yes".into());
        came::now(*what);
        let yours = memory.check(*claim);
        if yours != *wanted {
            return Err(format!("{what}: the answer is \"{}\". Yours: \"{}\".", word(wanted), word(&yours)));
        }
    }
    // What it grants is where it has to be, and nothing else changes.
    let claim = Claim { pd: PD, qp: None, key: buffer.key, address: VA + 90, length: 10, needed: Access::LOCAL_WRITE };
    let there = memory.write(claim, &[7; 10]).is_ok() && buffer.bytes(buffer.address + 90, 10) == [7; 10];
    if !there || buffer.bytes(buffer.address, 90) != [0; 90] || !buffer.guards_stand() {
        return Err(format!(
            "10 bytes are written at address {:#x}, and the region begins with {VA:#x}: they are its last ones. In the program's \
             memory it begins elsewhere. Yours puts them somewhere else.",
            claim.address
        ));
    }
    shared_receive()?;
    Ok(format!("{} claims: each gets the answer that it should get.", claims.len()))
}

/// A receive of a shared queue is in that queue's domain.
fn shared_receive() -> Result<(), String> {
    for (pd, wanted) in [(PD_OF_SHARED, "ACK"), (PD, "NAK")] {
        let mut side = ready(Service::Rc, attributes(0, 0, 7, 7), true);
        let lkey = side.register(ALL, SIZE as u64, pd);
        let sge = vec![Sge { lkey, ..side.piece(0, 8) }];
        // A new queue has room.
        if let Some(shared) = &mut side.shared {
            shared.post(ReceiveRequest { wr_id: 1, sge });
        }
        let send = request(Operation::Send, Part::Only, 0, Reth::default());
        side.receive(Packet { payload: vec![7; 8], ..send });
        let answer = side.out.iter().map(shown).next_back().unwrap_or_default();
        if !answer.starts_with(wanted) {
            let whose =
                if wanted == "ACK" { "that queue's domain" } else { "the queue pair's domain, which is another" };
            return Err(format!(
                "A SEND came for a receive of a shared queue, whose memory is in {whose}: expected {wanted}. Yours: {answer}."
            ));
        }
    }
    Ok(())
}

/// Claims in words, and their answers.
fn claims(key: u32, window: u32, zero: u32) -> Vec<(&'static str, Claim, Result<(), Refusal>)> {
    let whole = Claim { pd: PD, qp: Some(QP), key, address: VA, length: LENGTH as u32, needed: Access::REMOTE_READ };
    let last = Claim { address: VA + LENGTH - 1, length: 1, ..whole };
    vec![
        ("A READ of the whole region", whole, Ok(())),
        ("A READ of its last byte", last, Ok(())),
        ("A key that is one bit off", Claim { key: key ^ 1, ..whole }, Err(Refusal::Key)),
        ("A key of nothing", Claim { key: NO_KEY, ..whole }, Err(Refusal::Key)),
        ("A queue pair of another domain", Claim { pd: PD + 1, ..whole }, Err(Refusal::Pd)),
        ("A WRITE, and the region allows READs", Claim { needed: Access::REMOTE_WRITE, ..whole }, Err(Refusal::Access)),
        (
            "A READ and a WRITE at once, and the region allows READs",
            Claim { needed: Access(Access::REMOTE_READ.0 | Access::REMOTE_WRITE.0), ..whole },
            Err(Refusal::Access),
        ),
        (
            "A WRITE of a queue pair of another domain, and the region allows READs: the domain is asked first",
            Claim { pd: PD + 1, needed: Access::REMOTE_WRITE, ..whole },
            Err(Refusal::Pd),
        ),
        (
            "A WRITE of a byte after it, and the region allows READs: the access is asked first",
            Claim { address: VA + LENGTH, length: 1, needed: Access::REMOTE_WRITE, ..whole },
            Err(Refusal::Access),
        ),
        ("A byte in front of it", Claim { address: VA - 1, length: 1, ..whole }, Err(Refusal::Bounds)),
        ("A byte after it", Claim { address: VA + LENGTH, length: 1, ..whole }, Err(Refusal::Bounds)),
        ("One byte more than it has", Claim { length: LENGTH as u32 + 1, ..whole }, Err(Refusal::Bounds)),
        ("Two bytes from its last one on", Claim { length: 2, ..last }, Err(Refusal::Bounds)),
        ("An address at the end of all", Claim { address: u64::MAX, length: 2, ..whole }, Err(Refusal::Bounds)),
        (
            "An address so far up that address and length together are more than 2^64, of a region that begins with 0",
            Claim { key: zero, address: u64::MAX, length: 2, ..whole },
            Err(Refusal::Bounds),
        ),
        ("As many bytes as can be named", Claim { length: u32::MAX, ..last }, Err(Refusal::Bounds)),
        ("No byte at all, with a key of nothing", Claim { key: NO_KEY, length: 0, ..whole }, Ok(())),
        ("A window's own queue pair", Claim { key: window, ..whole }, Ok(())),
        (
            "Another queue pair, with a window's key",
            Claim { key: window, qp: Some(QP + 1), ..whole },
            Err(Refusal::Window),
        ),
        ("The program itself, with a window's key", Claim { key: window, qp: None, ..whole }, Err(Refusal::Window)),
    ]
}
