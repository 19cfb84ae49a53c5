//! What programs that are not of this project want besides: ibv_devinfo, ibv_rc_pingpong, perftest. Most of it says that
//! there is none; a program asks whether it may, and does without.

use super::{minus_one, null};
use libc::{c_char, c_int, c_void};
use rdma_sys::{ibv_ah, ibv_qp};

/// `ibv_wc_status_str(3)`.
#[no_mangle]
pub extern "C" fn ibv_wc_status_str(status: u32) -> *const c_char {
    let text: &[u8] = match status {
        0 => b"success\0",
        1 => b"local length error\0",
        2 => b"local QP operation error\0",
        4 => b"local protection error\0",
        5 => b"Work Request Flushed Error\0",
        7 => b"bad response error\0",
        9 => b"remote invalid request error\0",
        10 => b"remote access error\0",
        11 => b"remote operation error\0",
        12 => b"transport retry counter exceeded\0",
        13 => b"RNR retry counter exceeded\0",
        _ => b"a status that this device does not give\0",
    };
    text.as_ptr().cast()
}

/// `ibv_qp_to_qp_ex(3)`: null, this queue pair has no extended interface.
#[no_mangle]
pub extern "C" fn ibv_qp_to_qp_ex(_qp: *mut ibv_qp) -> *mut c_void {
    std::ptr::null_mut()
}

/// Of the library's private interface: there is no sysfs file about this device.
#[no_mangle]
pub extern "C" fn ibv_read_sysfs_file() -> c_int {
    minus_one(libc::ENOENT)
}

macro_rules! refuse {
    ($($answer:expr, $type:ty: $($name:ident)*;)*) => {
        $($(
            /// Not supported: `EOPNOTSUPP`.
            #[no_mangle]
            pub extern "C" fn $name() -> $type {
                $answer
            }
        )*)*
    };
}

refuse! {
    null(libc::EOPNOTSUPP), *mut c_void: rdma_get_devices;
    libc::EOPNOTSUPP, c_int: ibv_resize_cq ibv_fork_init;
    minus_one(libc::EOPNOTSUPP), c_int: ibv_rereg_mr rdma_create_ep rdma_join_multicast rdma_leave_multicast rdma_notify
        rdma_create_srq rdma_get_request;
    // Address handles are for datagrams.
    null(libc::EOPNOTSUPP), *mut ibv_ah: ibv_create_ah ibv_create_ah_from_wc;
    libc::EOPNOTSUPP, c_int: ibv_destroy_ah ibv_attach_mcast ibv_detach_mcast;
    // perftest is linked with the libraries of three makers of NICs, and asks for memory of a GPU.
    null(libc::EOPNOTSUPP), *mut c_void: mlx5dv_create_mkey mlx5dv_create_qp mlx5dv_dek_create mlx5dv_open_device
        mlx5dv_qp_ex_from_ibv_qp_ex mlx5dv_crypto_login mlx5dv_reg_dmabuf_mr efadv_create_qp_ex hnsdv_create_qp ibv_reg_dmabuf_mr;
    libc::EOPNOTSUPP, c_int: mlx5dv_dek_destroy mlx5dv_destroy_mkey mlx5dv_devx_general_cmd mlx5dv_query_device efadv_query_device;
}
