//! The commands of `/dev/infiniband/rdma_cm` as they are in a program's memory: `rdma/rdma_user_cm.h`, ABI version 4.
//!
//! Names and order of the fields are the header's. All numbers are in the byte order of the machine unless a comment says other.

use crate::abi::{commands, structs, AhAttr};
use bytemuck::{Pod, Zeroable};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

// librdmacm tries BIND once. As it is refused here, as are the others for addresses of InfiniBand (QUERY, BIND, RESOLVE_ADDR,
// JOIN_MCAST), it writes those for IP addresses from then on.
commands! {
    CREATE_ID 0 DESTROY_ID 1 BIND_IP 2 RESOLVE_IP 3 RESOLVE_ROUTE 4 QUERY_ROUTE 5 CONNECT 6 LISTEN 7 ACCEPT 8 REJECT 9
    DISCONNECT 10 INIT_QP_ATTR 11 GET_EVENT 12 GET_OPTION 13 SET_OPTION 14 NOTIFY 15 JOIN_IP_MCAST 16 LEAVE_MCAST 17
    MIGRATE_ID 18 QUERY 19 BIND 20 RESOLVE_ADDR 21 JOIN_MCAST 22
}

/// Port spaces (specification, annex A11.2): byte 3 and 4 of a service's ID.
pub mod port_space {
    pub const IPOIB: u16 = 0x0002;
    pub const TCP: u16 = 0x0106;
    pub const UDP: u16 = 0x0111;
    pub const IB: u16 = 0x013f;
}

/// Transports: `ibv_qp_type`.
pub mod qp_type {
    pub const RC: u8 = 2;
    pub const UD: u8 = 4;
    pub const XRC_SEND: u8 = 9;
}

/// Options of an id, `RDMA_OPTION_ID_…`.
pub mod option {
    pub const LEVEL_ID: u32 = 0;
    pub const TOS: u32 = 0;
    pub const REUSEADDR: u32 = 1;
    pub const AFONLY: u32 = 2;
    pub const ACK_TIMEOUT: u32 = 3;
}

structs! {
    /// Before each command: how many bytes follow, and how many there is room for in the answer.
    Header 8 { cmd: u32, input: u16, out: u16, }
    CreateId 24 { uid: u64, response: u64, ps: u16, qp_type: u8, reserved: [u8; 5], }
    /// LEAVE_MCAST has the same.
    DestroyId 16 { response: u64, id: u32, reserved: u32, }
    BindIp 40 { response: u64, addr: SockAddr, id: u32, }
    ResolveIp 64 { src_addr: SockAddr, dst_addr: SockAddr, id: u32, timeout_ms: u32, }
    ResolveRoute 8 { id: u32, timeout_ms: u32, }
    Query 16 { response: u64, id: u32, option: u32, }
    /// `node_guid` is big endian.
    QueryRouteResp 208 {
        node_guid: u64, ib_route: [PathRec; 2], src_addr: SockAddr, dst_addr: SockAddr, num_paths: u32, port_num: u8,
        reserved: [u8; 3], ibdev_index: u32, reserved1: u32,
    }
    /// `ib_user_path_rec` of `rdma/ib_user_sa.h`. `pkey` is big endian, and so are LIDs and flow label.
    PathRec 64 {
        dgid: [u8; 16], sgid: [u8; 16], dlid: u16, slid: u16, raw_traffic: u32, flow_label: u32, reversible: u32, mtu: u32,
        pkey: u16, hop_limit: u8, traffic_class: u8, numb_path: u8, sl: u8, mtu_selector: u8, rate_selector: u8, rate: u8,
        packet_life_time_selector: u8, packet_life_time: u8, preference: u8,
    }
    ConnParam 272 {
        qp_num: u32, qkey: u32, private_data: [u8; 256], private_data_len: u8, srq: u8, responder_resources: u8,
        initiator_depth: u8, flow_control: u8, retry_count: u8, rnr_retry_count: u8, valid: u8,
    }
    UdParam 304 {
        qp_num: u32, qkey: u32, ah_attr: AhAttr, private_data: [u8; 256], private_data_len: u8, reserved: [u8; 7],
    }
    /// What follows in newer versions are the enhancements of a vendor (ECE), which this device has none of.
    Connect 280 { conn_param: ConnParam, id: u32, reserved: u32, }
    Listen 8 { id: u32, backlog: i32, }
    Accept 288 { uid: u64, conn_param: ConnParam, id: u32, reserved: u32, }
    Reject 264 { id: u32, private_data_len: u8, reason: u8, reserved: [u8; 2], private_data: [u8; 256], }
    Disconnect 4 { id: u32, }
    InitQpAttr 16 { response: u64, id: u32, qp_state: u32, }
    Notify 8 { id: u32, event: u32, }
    JoinIpMcast 48 { response: u64, uid: u64, addr: SockAddr, id: u32, }
    GetEvent 8 { response: u64, }
    /// `param` is of a UD id an [`UdParam`], of any other a [`ConnParam`].
    EventResp 336 { uid: u64, id: u32, event: u32, status: i32, param: [u8; 304], reserved: u32, ece: [u32; 2], }
    SetOption 24 { optval: u64, id: u32, level: u32, optname: u32, optlen: u32, }
    /// `fd` is the open rdma_cm that the id is to leave; the command is written to the other.
    MigrateId 16 { response: u64, id: u32, fd: u32, }
    /// `sockaddr_in6`, and in its place `sockaddr_in`, whose address stands where that of IPv6 has its flow. `port` is big endian.
    SockAddr 28 { family: u16, port: u16, v4: [u8; 4], v6: [u8; 16], scope_id: u32, }
}

impl SockAddr {
    /// None for a family that is not IP.
    pub fn read(self) -> Option<SocketAddr> {
        let port = u16::from_be(self.port);
        match i32::from(self.family) {
            libc::AF_INET => Some((Ipv4Addr::from(self.v4), port).into()),
            libc::AF_INET6 => Some(SocketAddrV6::new(Ipv6Addr::from(self.v6), port, 0, self.scope_id).into()),
            _ => None,
        }
    }
}

impl From<Option<SocketAddr>> for SockAddr {
    fn from(address: Option<SocketAddr>) -> SockAddr {
        let Some(address) = address else { return SockAddr::zeroed() };
        let port = address.port().to_be();
        match address {
            SocketAddr::V4(own) => {
                SockAddr { family: libc::AF_INET as u16, port, v4: own.ip().octets(), ..SockAddr::zeroed() }
            }
            SocketAddr::V6(own) => SockAddr {
                family: libc::AF_INET6 as u16,
                port,
                v6: own.ip().octets(),
                scope_id: own.scope_id(),
                ..SockAddr::zeroed()
            },
        }
    }
}

impl AhAttr {
    /// How a queue pair of this device reaches an address.
    pub(super) fn to(address: IpAddr, traffic_class: u8) -> AhAttr {
        let dgid = nic::cm::gid(address);
        AhAttr { dgid, hop_limit: 64, traffic_class, is_global: 1, port_num: 1, ..AhAttr::zeroed() }
    }
}
