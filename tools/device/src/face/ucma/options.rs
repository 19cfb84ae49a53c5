//! What a program may set before it connects (rdma_set_option(3)).

use super::abi::{self, option, qp_type};
use super::id::State;
use super::{command, Done, Ids};
use crate::machine::Asker;
use rustix::io::Errno;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    /// The type of service: the IP header's traffic class.
    pub tos: u8,
    /// Others that also say so may have the same port, until one listens.
    pub is_port_shared: bool,
    /// Whether one that is bound to all addresses is so to those of its family only.
    pub is_one_family: Option<bool>,
    /// How long to wait for an ACK: 4.096 µs × 2^n.
    pub ack_timeout: Option<u8>,
}

impl Ids {
    /// rdma_set_option(3).
    pub(super) fn set_option(&mut self, asker: &Asker) -> Result<Done, Errno> {
        let command: abi::SetOption = command(asker)?;
        let id = self.id(asker.file, command.id)?;
        // A byte or an int, of which only zero or not is asked.
        let value = match command.optlen {
            1 => i32::from(asker.process.value::<u8>(command.optval)?),
            4 => asker.process.value(command.optval)?,
            _ => 0,
        };
        let is_early = matches!(id.state, State::Idle | State::Bound);
        match (command.level, command.optname, command.optlen) {
            (option::LEVEL_ID, option::TOS, 1) => id.options.tos = value as u8,
            (option::LEVEL_ID, option::REUSEADDR, 4) => match (value != 0, id.state) {
                (_, State::Idle) => id.options.is_port_shared = value != 0,
                (true, state) if state != State::Listen => id.options.is_port_shared = true,
                _ => return Err(Errno::INVAL),
            },
            (option::LEVEL_ID, option::AFONLY, 4) if is_early => id.options.is_one_family = Some(value != 0),
            (option::LEVEL_ID, option::ACK_TIMEOUT, 1) if [qp_type::RC, qp_type::XRC_SEND].contains(&id.qp_type) => {
                id.options.ack_timeout = Some(value as u8 & 0x1f);
            }
            (option::LEVEL_ID, option::TOS..=option::ACK_TIMEOUT, _) => return Err(Errno::INVAL),
            _ => return Err(Errno::NOSYS),
        }
        Ok(Done::All)
    }
}
