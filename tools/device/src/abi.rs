//! The structs of the kernel's headers, as programs and kernel exchange them: `rdma/ib_user_verbs.h` (commands of
//! `/dev/infiniband/uverbs0`) and `rdma/rdma_user_rxe.h` (the queues that the rxe provider shares with its kernel driver).
//!
//! Names and order of the fields are the headers'. All numbers are in the byte order of the machine unless a comment says other.
//! Commands that begin with the address of their answer, as all old ones do, have it in [`Command::response`](command).

use bytemuck::{Pod, Zeroable};

/// Structs in C's layout, each with the size that the header's has.
macro_rules! structs {
    ($($(#[$about:meta])* $name:ident $size:literal { $($(#[$note:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$about])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Pod, Zeroable)]
        pub struct $name { $($(#[$note])* pub $field: $type,)* }
        const _: () = assert!(std::mem::size_of::<$name>() == $size);
    )*};
}
pub(super) use structs;

/// Commands by number, and their names.
macro_rules! commands {
    ($($name:ident $number:literal)*) => {
        pub mod command {
            $(pub const $name: u32 = $number;)*

            pub fn name(number: u32) -> Option<&'static str> {
                match number {
                    $($number => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}
pub(super) use commands;

/// Of a command's number in its header; the rest are flags.
pub const COMMAND: u32 = 0xff;
/// An extended command: another header behind the first, and the response's address there.
pub const EXTENDED: u32 = 0x8000_0000;

commands! {
    GET_CONTEXT 0 QUERY_DEVICE 1 QUERY_PORT 2 ALLOC_PD 3 DEALLOC_PD 4 CREATE_AH 5 DESTROY_AH 8 REG_MR 9 REREG_MR 11 DEREG_MR 13
    ALLOC_MW 14 DEALLOC_MW 16 CREATE_COMP_CHANNEL 17 CREATE_CQ 18 RESIZE_CQ 19 DESTROY_CQ 20 REQ_NOTIFY_CQ 23 CREATE_QP 24
    QUERY_QP 25 MODIFY_QP 26 DESTROY_QP 27 POST_SEND 28 ATTACH_MCAST 30 DETACH_MCAST 31 CREATE_SRQ 32 MODIFY_SRQ 33 QUERY_SRQ 34
    DESTROY_SRQ 35 OPEN_XRCD 37 CLOSE_XRCD 38 CREATE_XSRQ 39 OPEN_QP 40
}

structs! {
    Header 8 {
        command: u32,
        /// Lengths of the command and of its response; of 4 bytes each, with an extended command of 8.
        in_words: u16,
        out_words: u16,
    }
    ExtendedHeader 16 {
        response: u64,
        provider_in_words: u16,
        provider_out_words: u16,
        reserved: u32,
    }
    /// What a program reads from a context's descriptor.
    AsyncEventDesc 16 { element: u64, event_type: u32, reserved: u32, }
    GetContextResp 8 { async_fd: u32, num_comp_vectors: u32, }
    /// `ib_uverbs_query_device_resp`.
    QueryDeviceResp 176 {
        fw_ver: u64,
        /// Big endian, as the next.
        node_guid: u64,
        sys_image_guid: u64,
        max_mr_size: u64,
        page_size_cap: u64,
        vendor_id: u32,
        vendor_part_id: u32,
        hw_ver: u32,
        max_qp: u32,
        max_qp_wr: u32,
        device_cap_flags: u32,
        max_sge: u32,
        max_sge_rd: u32,
        max_cq: u32,
        max_cqe: u32,
        max_mr: u32,
        max_pd: u32,
        max_qp_rd_atom: u32,
        max_ee_rd_atom: u32,
        max_res_rd_atom: u32,
        max_qp_init_rd_atom: u32,
        max_ee_init_rd_atom: u32,
        atomic_cap: u32,
        max_ee: u32,
        max_rdd: u32,
        max_mw: u32,
        max_raw_ipv6_qp: u32,
        max_raw_ethy_qp: u32,
        max_mcast_grp: u32,
        max_mcast_qp_attach: u32,
        max_total_mcast_qp_attach: u32,
        max_ah: u32,
        max_fmr: u32,
        max_map_per_fmr: u32,
        max_srq: u32,
        max_srq_wr: u32,
        max_srq_sge: u32,
        max_pkeys: u16,
        local_ca_ack_delay: u8,
        phys_port_cnt: u8,
        reserved: [u8; 4],
    }
    /// Behind it in `ib_uverbs_ex_query_device_resp`.
    ExQueryDeviceResp 128 {
        comp_mask: u32,
        response_length: u32,
        /// On-demand paging and clocks.
        not_here: [u64; 5],
        device_cap_flags_ex: u64,
        /// Spreading of packets over queues, matching of tags, device memory and the like.
        neither: [u64; 9],
    }
    QueryPort 8 { port_num: u8, reserved: [u8; 7], }
    QueryPortResp 40 {
        port_cap_flags: u32,
        max_msg_sz: u32,
        bad_pkey_cntr: u32,
        qkey_viol_cntr: u32,
        gid_tbl_len: u32,
        pkey_tbl_len: u16,
        lid: u16,
        sm_lid: u16,
        state: u8,
        max_mtu: u8,
        active_mtu: u8,
        lmc: u8,
        max_vl_num: u8,
        sm_sl: u8,
        subnet_timeout: u8,
        init_type_reply: u8,
        active_width: u8,
        active_speed: u8,
        phys_state: u8,
        link_layer: u8,
        flags: u8,
        reserved: u8,
    }
    RegMr 32 { start: u64, length: u64, hca_va: u64, pd_handle: u32, access_flags: u32, }
    RegMrResp 12 { mr_handle: u32, lkey: u32, rkey: u32, }
    ReregMr 40 {
        mr_handle: u32,
        flags: u32,
        start: u64,
        length: u64,
        hca_va: u64,
        pd_handle: u32,
        access_flags: u32,
    }
    ReregMrResp 8 { lkey: u32, rkey: u32, }
    AllocMw 8 { pd_handle: u32, mw_type: u8, reserved: [u8; 3], }
    AllocMwResp 8 { mw_handle: u32, rkey: u32, }
    CreateCq 32 {
        user_handle: u64,
        cqe: u32,
        comp_vector: u32,
        comp_channel: i32,
        comp_mask: u32,
        /// The rest only in the extended command.
        flags: u32,
        reserved: u32,
    }
    CreateCqResp 8 { cq_handle: u32, cqe: u32, }
    /// The end of all extended responses.
    Extended 8 { comp_mask: u32, response_length: u32, }
    ResizeCq 8 { cq_handle: u32, cqe: u32, }
    ResizeCqResp 8 { cqe: u32, reserved: u32, }
    ReqNotifyCq 8 { cq_handle: u32, solicited_only: u32, }
    DestroyCqResp 8 { comp_events_reported: u32, async_events_reported: u32, }
    /// `ib_uverbs_wc`: a completion, as it is in a completion queue.
    Wc 48 {
        wr_id: u64,
        status: u32,
        opcode: u32,
        vendor_err: u32,
        byte_len: u32,
        /// Immediate data, big endian; or the rkey that a SEND has invalidated.
        ex: u32,
        qp_num: u32,
        src_qp: u32,
        wc_flags: u32,
        pkey_index: u16,
        slid: u16,
        sl: u8,
        dlid_path_bits: u8,
        port_num: u8,
        reserved: u8,
    }
    AhAttr 32 {
        dgid: [u8; 16],
        flow_label: u32,
        sgid_index: u8,
        hop_limit: u8,
        traffic_class: u8,
        grh_reserved: u8,
        dlid: u16,
        sl: u8,
        src_path_bits: u8,
        static_rate: u8,
        is_global: u8,
        port_num: u8,
        reserved: u8,
    }
    /// `ib_uverbs_qp_attr`, with which the connection manager says how to modify a queue pair.
    QpAttr 144 {
        qp_attr_mask: u32,
        qp_state: u32,
        cur_qp_state: u32,
        path_mtu: u32,
        path_mig_state: u32,
        qkey: u32,
        rq_psn: u32,
        sq_psn: u32,
        dest_qp_num: u32,
        qp_access_flags: u32,
        ah_attr: AhAttr,
        alt_ah_attr: AhAttr,
        cap: Cap,
        pkey_index: u16,
        alt_pkey_index: u16,
        en_sqd_async_notify: u8,
        sq_draining: u8,
        max_rd_atomic: u8,
        max_dest_rd_atomic: u8,
        min_rnr_timer: u8,
        port_num: u8,
        timeout: u8,
        retry_cnt: u8,
        rnr_retry: u8,
        alt_port_num: u8,
        alt_timeout: u8,
        reserved: [u8; 5],
    }
    /// How much a queue pair holds.
    Cap 20 {
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline_data: u32,
    }
    CreateQp 64 {
        user_handle: u64,
        pd_handle: u32,
        send_cq_handle: u32,
        recv_cq_handle: u32,
        srq_handle: u32,
        cap: Cap,
        sq_sig_all: u8,
        qp_type: u8,
        is_srq: u8,
        reserved: u8,
        /// The rest only in the extended command.
        comp_mask: u32,
        create_flags: u32,
        rwq_ind_tbl_handle: u32,
        source_qpn: u32,
    }
    CreateQpResp 32 { qp_handle: u32, qpn: u32, cap: Cap, reserved: u32, }
    QpDest 32 {
        dgid: [u8; 16],
        flow_label: u32,
        dlid: u16,
        reserved: u16,
        sgid_index: u8,
        hop_limit: u8,
        traffic_class: u8,
        sl: u8,
        src_path_bits: u8,
        static_rate: u8,
        is_global: u8,
        port_num: u8,
    }
    QueryQp 8 { qp_handle: u32, attr_mask: u32, }
    /// What QUERY_QP and MODIFY_QP have in common.
    QpState 40 {
        qkey: u32,
        rq_psn: u32,
        sq_psn: u32,
        dest_qp_num: u32,
        qp_access_flags: u32,
        pkey_index: u16,
        alt_pkey_index: u16,
        qp_state: u8,
        cur_qp_state: u8,
        path_mtu: u8,
        path_mig_state: u8,
        /// Of QUERY_QP: whether it is draining.
        en_sqd_async_notify: u8,
        max_rd_atomic: u8,
        max_dest_rd_atomic: u8,
        min_rnr_timer: u8,
        port_num: u8,
        timeout: u8,
        retry_cnt: u8,
        rnr_retry: u8,
        alt_port_num: u8,
        alt_timeout: u8,
        /// Of QUERY_QP alone.
        sq_sig_all: u8,
        reserved: u8,
    }
    QueryQpResp 128 { dest: QpDest, alt_dest: QpDest, cap: Cap, state: QpState, reserved: u32, }
    ModifyQp 112 { dest: QpDest, alt_dest: QpDest, qp_handle: u32, attr_mask: u32, state: QpState, }
    CreateAh 48 { user_handle: u64, pd_handle: u32, reserved: u32, attr: AhAttr, }
    AttachMcast 24 { gid: [u8; 16], qp_handle: u32, mlid: u16, reserved: u16, }
    CreateSrq 24 { user_handle: u64, pd_handle: u32, max_wr: u32, max_sge: u32, srq_limit: u32, }
    CreateXsrq 40 {
        user_handle: u64,
        srq_type: u32,
        pd_handle: u32,
        max_wr: u32,
        max_sge: u32,
        srq_limit: u32,
        max_num_tags: u32,
        xrcd_handle: u32,
        cq_handle: u32,
    }
    CreateSrqResp 16 { srq_handle: u32, max_wr: u32, max_sge: u32, srqn: u32, }
    /// With the driver's own behind it: where the program wants to be told of the new ring, a [`MmInfo`].
    ModifySrq 24 { srq_handle: u32, attr_mask: u32, max_wr: u32, srq_limit: u32, mmap_info_addr: u64, }
    QuerySrqResp 16 { max_wr: u32, max_sge: u32, srq_limit: u32, reserved: u32, }

    /// Where the provider maps a queue from: `mminfo`.
    MmInfo 16 { offset: u64, size: u32, pad: u32, }
    /// `rxe_send_wqe`: what is in a send queue, before its pieces of memory or inline bytes.
    SendWqe 208 {
        wr_id: u64,
        reserved: u32,
        opcode: u32,
        send_flags: u32,
        /// Immediate data, big endian; or the rkey to invalidate.
        ex: u32,
        /// By opcode: [`Rdma`], [`Flush`], [`Atomic`], [`Ud`], [`BindMw`].
        wr: [u64; 15],
        kernels: [u32; 10],
        dma: Dma,
    }
    Rdma 16 { remote_addr: u64, rkey: u32, reserved: u32, }
    Flush 24 { remote_addr: u64, length: u32, rkey: u32, kind: u8, level: u8, reserved: [u8; 6], }
    Atomic 32 { remote_addr: u64, compare_add: u64, swap: u64, rkey: u32, reserved: u32, }
    Ud 16 { remote_qpn: u32, remote_qkey: u32, pkey_index: u16, reserved: u16, ah_num: u32, }
    BindMw 32 { addr: u64, length: u64, mr_lkey: u32, mw_rkey: u32, rkey: u32, access: u32, }
    /// `rxe_recv_wqe`: what is in a receive queue, before its pieces of memory.
    RecvWqe 40 { wr_id: u64, reserved: u32, padding: u32, dma: Dma, }
    /// `rxe_dma_info`.
    Dma 24 { length: u32, resid: u32, cur_sge: u32, num_sge: u32, sge_offset: u32, reserved: u32, }
    /// `rxe_sge`.
    RxeSge 16 { addr: u64, length: u32, lkey: u32, }
}
