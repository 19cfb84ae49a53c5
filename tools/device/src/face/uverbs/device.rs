//! The device and its port, as programs are told of them; and addresses that datagrams go to.

use super::{Answer, Command, Done, Object};
use crate::abi::*;
use crate::node::pipe::Pipe;
use crate::node::{AddressHandle, Nic};
use bytemuck::Zeroable;
use nic::cm::{address_in, Cm};
use nic::qp::Qp;
use rustix::io::Errno;
use std::mem::size_of;
use std::rc::Rc;

/// The limits that the device tells, and that commands keep to: rdma_rxe's of Linux 6.12, where nothing speaks against it.
pub mod most {
    use crate::abi::RxeSge;
    use crate::node::port::Port;
    use nic::multicast::Groups;
    use std::mem::size_of;

    pub const QUEUE: u32 = 16_384;
    pub const SGE: u32 = 32;
    pub const SRQ_SGE: u32 = 27;
    /// As many bytes as the pieces of memory of a request take.
    pub const INLINE: u32 = SGE * size_of::<RxeSge>() as u32;
    pub const COMPLETIONS: u32 = 32_767;
    pub const READS: u8 = 128;
    pub const OBJECTS: u32 = 65_536;
    pub const GROUPS: u32 = Port::GROUPS as u32;
    /// Queue pairs of one group.
    pub const MEMBERS: u32 = Groups::MEMBERS as u32;
}

/// Completion vectors: one would do, but programs try the second.
pub const VECTORS: u32 = 2;

/// Opens the device.
pub fn get_context(nic: &mut Nic, command: &mut Command) -> Answer {
    let (events, descriptor) = Pipe::new()?;
    let async_fd = command.give(&descriptor)?;
    command.context(nic)?.events = Some(Rc::new(events));
    Ok(Done::with(&GetContextResp { async_fd, num_comp_vectors: VECTORS }))
}

pub fn query(nic: &mut Nic, command: &mut Command) -> Answer {
    /// Of `ib_uverbs_device_cap_flags`: CURR_QP_STATE_MOD, SYS_IMAGE_GUID, RC_RNR_NAK_GEN, SRQ_RESIZE, MEM_WINDOW,
    /// MEM_WINDOW_TYPE_2B.
    const ABLE: u32 = 1 << 7 | 1 << 11 | 1 << 12 | 1 << 13 | 1 << 17 | 1 << 24;
    /// Of those that only the extended command tells: FLUSH_GLOBAL, ATOMIC_WRITE.
    const ABLE_BESIDES: u64 = 1 << 38 | 1 << 40;
    const ATOMIC_HCA: u32 = 1;
    let guid = Cm::guid(nic.address()).to_be();
    let reads = u32::from(most::READS);
    let told = QueryDeviceResp {
        node_guid: guid,
        sys_image_guid: guid,
        max_mr_size: u64::MAX,
        page_size_cap: 0xffff_f000,
        vendor_id: 0xff_ffff,
        max_qp: most::OBJECTS,
        max_qp_wr: most::QUEUE,
        device_cap_flags: ABLE,
        max_sge: most::SGE,
        max_sge_rd: most::SGE,
        max_cq: most::OBJECTS,
        max_cqe: most::COMPLETIONS,
        max_mr: most::OBJECTS,
        max_pd: most::OBJECTS,
        max_qp_rd_atom: reads,
        max_res_rd_atom: reads * most::OBJECTS,
        max_qp_init_rd_atom: reads,
        atomic_cap: ATOMIC_HCA,
        max_mw: most::OBJECTS,
        max_mcast_grp: most::GROUPS,
        max_mcast_qp_attach: most::MEMBERS,
        max_total_mcast_qp_attach: most::GROUPS * most::MEMBERS,
        max_ah: most::OBJECTS,
        max_srq: most::OBJECTS,
        max_srq_wr: most::QUEUE,
        max_srq_sge: most::SRQ_SGE,
        max_pkeys: 1,
        local_ca_ack_delay: 15,
        phys_port_cnt: 1,
        ..Zeroable::zeroed()
    };
    if !command.extended {
        return Ok(Done::with(&told));
    }
    let most = size_of::<QueryDeviceResp>() + size_of::<ExQueryDeviceResp>();
    let response_length = command.room.min(most) as u32;
    let device_cap_flags_ex = u64::from(ABLE) | ABLE_BESIDES;
    Ok(Done::with(&told).and(&ExQueryDeviceResp { response_length, device_cap_flags_ex, ..Zeroable::zeroed() }))
}

pub fn query_port(_: &mut Nic, command: &mut Command) -> Answer {
    /// By the numbers of `ibv_port_state`, `ibv_mtu`, and IBTA's of link states, widths and speeds.
    const ACTIVE: u8 = 4;
    const MTU_1024: u8 = 3;
    const MTU_4096: u8 = 5;
    const LINK_UP: u8 = 5;
    const ETHERNET: u8 = 2;
    /// The port has a GRH in all packets: `IBV_QPF_GRH_REQUIRED`.
    const GRH_REQUIRED: u8 = 1;
    if command.input::<QueryPort>().port_num != 1 {
        return Err(Errno::INVAL);
    }
    Ok(Done::with(&QueryPortResp {
        // IBV_PORT_CM_SUP
        port_cap_flags: 1 << 16,
        max_msg_sz: Qp::LONGEST,
        gid_tbl_len: 1,
        pkey_tbl_len: 1,
        state: ACTIVE,
        max_mtu: MTU_4096,
        active_mtu: MTU_1024,
        max_vl_num: 1,
        active_width: 1,
        active_speed: 1,
        phys_state: LINK_UP,
        link_layer: ETHERNET,
        flags: GRH_REQUIRED,
        ..Zeroable::zeroed()
    }))
}

pub fn create_address_handle(nic: &mut Nic, command: &mut Command) -> Answer {
    let input: CreateAh = command.input();
    nic.pds.get(command.file, input.pd_handle)?;
    if input.attr.port_num != 1 || input.attr.is_global != 1 || input.attr.sgid_index != 0 {
        return Err(Errno::INVAL);
    }
    let address = address_in(input.attr.dgid);
    let handle = nic
        .handles
        .insert(command.file, AddressHandle { pd: input.pd_handle, address, class: input.attr.traffic_class });
    // Once for libibverbs, and once for the provider, which puts it into requests.
    Ok(Done::with(&[handle, handle, 0]).made(Object::Ah, handle))
}
