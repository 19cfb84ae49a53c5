//! Which of two machines is the client, where the connection manager doesn't say it.

use super::Side;
use crate::tcp::Segment;
use rustc_hash::FxHashMap;
use std::net::IpAddr;

/// How it's known who the client is: the best evidence first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Roles {
    /// It sent the ConnectRequest.
    Asked,
    /// The run file names its machines.
    Named,
    /// It opened the TCP connection between the two machines.
    Opened,
    /// In the TCP connection between the two it has a port of the kind that systems give to clients, and the peer hasn't.
    Ports,
    /// It isn't known. The one whose request came first counts as the client.
    Guessed,
}

/// From this port on Linux takes the ports that it gives to clients.
const EPHEMERAL: u16 = 32768;
/// Who logs in where says nothing about a program that runs there.
const SSH: u16 = 22;

/// For pairs of machines: how it's known, and who the client is; None where that evidence contradicts itself.
#[derive(Debug, Default)]
pub(super) struct Hints(FxHashMap<(IpAddr, IpAddr), (Roles, Option<IpAddr>)>);

impl Hints {
    pub(super) fn tcp(&mut self, segment: &Segment) {
        let Segment { src, dst, src_port, dst_port, is_syn, is_ack, .. } = *segment;
        if src_port == SSH || dst_port == SSH {
            return;
        }
        match (is_syn, is_ack) {
            (true, false) => self.tell(src, dst, Roles::Opened),
            (true, true) => self.tell(dst, src, Roles::Opened),
            _ if src_port >= EPHEMERAL && dst_port < EPHEMERAL => self.tell(src, dst, Roles::Ports),
            _ if dst_port >= EPHEMERAL && src_port < EPHEMERAL => self.tell(dst, src, Roles::Ports),
            _ => {}
        }
    }

    pub(super) fn tell(&mut self, client: IpAddr, server: IpAddr, roles: Roles) {
        if client == server {
            return;
        }
        let known = self.0.entry(pair(client, server)).or_insert((roles, Some(client)));
        if roles < known.0 {
            *known = (roles, Some(client));
        } else if roles == known.0 && known.1 != Some(client) {
            known.1 = None;
        }
    }

    /// The role of a machine towards another one, and how that's known.
    pub(super) fn side(&self, ip: IpAddr, peer: IpAddr) -> Option<(Side, Roles)> {
        let (roles, client) = *self.0.get(&pair(ip, peer))?;
        Some((if client? == ip { Side::Client } else { Side::Server }, roles))
    }
}

fn pair(a: IpAddr, b: IpAddr) -> (IpAddr, IpAddr) {
    (a.min(b), a.max(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(ports: [u16; 2], is_syn: bool, is_ack: bool) -> Segment {
        let [src, dst] = ["10.0.0.1", "10.0.0.2"].map(|ip| ip.parse().unwrap());
        let (is_fin, is_rst, sequence, acknowledgement) = Default::default();
        let (ip_offset, header_offset, payload_offset, length) = Default::default();
        Segment {
            src,
            dst,
            src_port: ports[0],
            dst_port: ports[1],
            is_syn,
            is_ack,
            is_fin,
            is_rst,
            sequence,
            acknowledgement,
            ip_offset,
            header_offset,
            payload_offset,
            length,
        }
    }

    fn said(segments: &[Segment]) -> Option<(Side, Roles)> {
        let mut hints = Hints::default();
        segments.iter().for_each(|segment| hints.tcp(segment));
        hints.side("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap())
    }

    #[test]
    fn the_best_evidence_counts() {
        let syn = segment([18515, 40000], true, false);
        assert_eq!(said(&[syn]), Some((Side::Client, Roles::Opened)));
        assert_eq!(said(&[segment([18515, 40000], false, true), syn]), Some((Side::Client, Roles::Opened)));
        assert_eq!(said(&[segment([18515, 40000], false, true)]), Some((Side::Server, Roles::Ports)));
        assert_eq!(said(&[segment([18515, 40000], true, true)]), Some((Side::Server, Roles::Opened)));
    }

    #[test]
    fn what_proves_nothing_is_not_believed() {
        assert_eq!(said(&[segment([40000, 22], true, false)]), None, "somebody logs in");
        assert_eq!(said(&[segment([40000, 50000], false, true)]), None, "no port is a server's");
        let contradiction = [segment([40000, 7471], true, false), segment([7472, 40001], true, true)];
        assert_eq!(said(&contradiction), None);
    }
}
