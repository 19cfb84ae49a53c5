//! Who gets what is sent to a group.

use crate::pair::{attributes, of, Attributes, OURS, PEERS};
use nic::datagram::Route;
use nic::errno::Errno;
use nic::multicast::Groups;
use nic::packet::Packet;
use nic::qp::Service;
use nic::work::{Destination, Work};
use std::net::IpAddr;

const QKEY: u32 = 0x0123_4567;

fn group() -> IpAddr {
    IpAddr::from([239, 1, 2, 3])
}

/// Chapter 10: all members get it, on all machines; but the sender not its own.
#[test]
fn a_datagram_to_a_group_reaches_all_members_but_its_sender() {
    // Both numbers are in use on both devices.
    let [mut ours, mut peers] = [Groups::default(), Groups::default()];
    assert_eq!([17, 18, 18].map(|qp| ours.attach(group(), qp)), [Ok(true), Ok(false), Ok(false)]);
    assert_eq!(peers.attach(group(), 17), Ok(true));
    let side = || of(Service::Ud, 17, 0, 256, Attributes { qkey: QKEY, ..attributes(0, 0, 0, 0) });
    let [mut sender, mut receiver] = [side(), side()];
    let work = Work::Datagram(Destination { address: group(), class: 0, qp: Destination::GROUP, qkey: QKEY });
    sender.post(1, work, 0, 8).unwrap();
    let (route, packets) = (Route { from: OURS, to: group() }, sender.sends());
    assert_eq!((sender.to, packets[0].dest_qp), (Some(group()), 0xff_ffff));
    assert_eq!([ours.receivers(route, &packets[0], OURS), peers.receivers(route, &packets[0], PEERS)], [[18], [17]]);
    // The header in front names the group.
    receiver.post_receive(1, 0, 100).unwrap();
    receiver.act(|qp, out| qp.receive(route, packets[0].clone(), out));
    assert_eq!((receiver.received.len(), receiver.bytes(36, 4)), (1, vec![239, 1, 2, 3]));
    // For one queue pair it is not, as it came to the group.
    let one = Packet { dest_qp: 18, ..packets[0].clone() };
    assert!(ours.receivers(route, &one, OURS).is_empty());
}

#[test]
fn members_come_and_go() {
    let mut groups = Groups::default();
    assert_eq!(groups.attach([127, 0, 0, 1].into(), 17), Err(Errno::EINVAL));
    assert_eq!(groups.detach(group(), 17), Err(Errno::EINVAL));
    assert_eq!([17, 18].map(|qp| groups.attach(group(), qp)), [Ok(true), Ok(false)]);
    assert_eq!((groups.of(17), groups.of(19)), (vec![group()], vec![]));
    assert_eq!([17, 17, 18].map(|qp| groups.detach(group(), qp)), [Ok(false), Err(Errno::EINVAL), Ok(true)]);
    assert!(groups.of(18).is_empty());
}
