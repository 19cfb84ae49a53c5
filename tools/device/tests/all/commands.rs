//! Commands that a program writes to uverbs0 itself, byte by byte: those that are new to programs, and any bytes. The program is
//! this test, once more, on the device.

use crate::machine::{acts, again_as};
use crate::programs::support::DEVICE;
use bytemuck::{bytes_of, Pod, Zeroable};
use device::abi::{command::*, *};
use device::node::port::Port;
use libc::{EBADF, EBUSY, EFAULT, EINVAL, EMFILE, ENOMEM, EOPNOTSUPP};
use nic::multicast::Groups;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::mem::size_of;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Runs a test of this module as a program on the device.
fn on_the_device(test: &str) {
    let program = again_as(&format!("commands::{test}"));
    let line = [&[program.get_program()], &program.get_args().collect::<Vec<_>>()[..]].concat();
    let mut run = Command::new(DEVICE);
    run.args(["run", "--", "timeout", "300"]).args(line);
    run.envs(program.get_envs().map(|(name, value)| (name, value.unwrap())));
    let output = run.output().unwrap();
    let [said, errors] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success() && !errors.contains("panicked"), "{}: {said}{errors}", output.status);
}

/// The open device file, and what most programs begin with.
struct Device {
    file: File,
    pd: u32,
    buffer: Buffer,
}

/// Memory with nothing else in the 4 GiB around it: whatever the lower half of an address is, the device meets this or nothing.
/// As the kernel would, it writes wherever a command says, and the heap is no place for that.
struct Buffer(*mut u8);

impl Buffer {
    const WORDS: usize = 4096;
    const AROUND: usize = 1 << 32;

    fn new() -> Buffer {
        let (nothing, flags) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
        // SAFETY: a new mapping, somewhere.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), 2 * Self::AROUND, nothing, flags, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        let buffer = Buffer(base.cast());
        // SAFETY: it is in the mapping, on a page.
        let done =
            unsafe { libc::mprotect(buffer.start().cast(), 8 * Self::WORDS, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(done, 0);
        buffer
    }

    /// In the middle of those 4 GiB that the mapping has whole.
    fn start(&self) -> *mut u64 {
        let whole = (self.0 as usize).next_multiple_of(Self::AROUND);
        (whole + Self::AROUND / 2 + 0x1234_5000) as *mut u64
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: our own mapping.
        unsafe { libc::munmap(self.0.cast(), 2 * Self::AROUND) };
    }
}

impl Device {
    fn open() -> Device {
        let file = OpenOptions::new().read(true).write(true).open("/dev/infiniband/uverbs0").unwrap();
        let mut device = Device { file, pd: 0, buffer: Buffer::new() };
        device.ask::<GetContextResp>(GET_CONTEXT, &0u64).unwrap();
        device.pd = device.ask(ALLOC_PD, &[0u32; 0]).unwrap();
        device
    }

    fn write(&self, bytes: &[u8]) -> Result<(), i32> {
        let written = (&self.file).write(bytes).map_err(|error| error.raw_os_error().unwrap())?;
        assert_eq!(written, bytes.len());
        Ok(())
    }

    /// A command that is not answered but with an errno.
    fn tell(&self, command: u32, input: &impl Pod) -> Result<(), i32> {
        let header =
            Header { command, in_words: (size_of::<Header>() + bytes_of(input).len()) as u16 / 4, out_words: 0 };
        self.write(&[bytes_of(&header), bytes_of(input)].concat())
    }

    fn ask<R: Pod>(&self, command: u32, input: &impl Pod) -> Result<R, i32> {
        let mut answer = R::zeroed();
        let (words, out_words) = ((16 + bytes_of(input).len()) / 4, size_of::<R>() as u16 / 4);
        let header = Header { command, in_words: words as u16, out_words };
        let address = &mut answer as *mut R as u64;
        self.write(&[bytes_of(&header), bytes_of(&address), bytes_of(input)].concat())?;
        Ok(answer)
    }

    /// A region that is the buffer.
    fn register(&self, access_flags: u32) -> Result<RegMrResp, i32> {
        let (start, length) = (self.buffer.start() as u64, 8 * Buffer::WORDS as u64);
        self.ask(REG_MR, &RegMr { start, length, hca_va: start, pd_handle: self.pd, access_flags })
    }

    fn window(&self, mw_type: u8) -> Result<AllocMwResp, i32> {
        self.ask(ALLOC_MW, &AllocMw { pd_handle: self.pd, mw_type, reserved: [0; 3] })
    }

    fn cq(&self) -> (u32, Mapped) {
        let asked = CreateCq { user_handle: 1, cqe: 64, comp_channel: -1, ..CreateCq::zeroed() };
        let [handle, offset, size]: [u64; 3] = self.ask(CREATE_CQ, &asked).unwrap();
        (handle as u32, self.map(offset, size))
    }

    fn srq(&self, max_wr: u32) -> (u32, Mapped) {
        let asked = CreateSrq { user_handle: 2, pd_handle: self.pd, max_wr, max_sge: 2, srq_limit: 0 };
        let [handle, _, offset, size, _]: [u64; 5] = self.ask(CREATE_SRQ, &asked).unwrap();
        (handle as u32, self.map(offset, size))
    }

    /// A queue pair that is connected with itself, by the number of its type; and its queues of receives and of sends.
    fn qp(&self, qp_type: u8, cq: u32) -> (u32, [Mapped; 2]) {
        let cap = Cap { max_send_wr: 15, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 4, max_inline_data: 64 };
        let (pd_handle, send_cq_handle, recv_cq_handle) = (self.pd, cq, cq);
        let asked = CreateQp { pd_handle, send_cq_handle, recv_cq_handle, cap, qp_type, ..CreateQp::zeroed() };
        let made: [u64; 8] = self.ask(CREATE_QP, &asked).unwrap();
        let number = made[0] as u32;
        let gid = std::fs::read_to_string("/sys/class/infiniband/rxe0/ports/1/gids/0").unwrap();
        let mut dest = QpDest { is_global: 1, port_num: 1, ..QpDest::zeroed() };
        for (n, word) in gid.trim().split(':').enumerate() {
            dest.dgid[2 * n..][..2].copy_from_slice(&u16::from_str_radix(word, 16).unwrap().to_be_bytes());
        }
        for (qp_state, connected, datagrams) in [(1, 0b11_1001, 0b111_0001), (2, 0x12_9181, 1), (3, 0x1_2e01, 0x1_0001)]
        {
            let attr_mask = if qp_type == 4 { datagrams } else { connected };
            let (dest_qp_num, qp_access_flags, path_mtu, port_num, timeout) = (number, 0x10f, 3, 1, 14);
            let (max_rd_atomic, max_dest_rd_atomic, retry_cnt) = (4, 4, 6);
            let state = QpState {
                qp_state,
                dest_qp_num,
                qp_access_flags,
                path_mtu,
                port_num,
                timeout,
                max_rd_atomic,
                max_dest_rd_atomic,
                retry_cnt,
                ..QpState::zeroed()
            };
            let to = ModifyQp { dest, qp_handle: number, attr_mask, state, ..ModifyQp::zeroed() };
            self.tell(MODIFY_QP, &to).unwrap();
        }
        (number, [4, 6].map(|at| self.map(made[at], made[at + 1])))
    }

    fn map(&self, offset: u64, size: u64) -> Mapped {
        let (size, protection, file) = (size as usize, libc::PROT_READ | libc::PROT_WRITE, self.file.as_raw_fd());
        // SAFETY: a new mapping, somewhere.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), size, protection, libc::MAP_SHARED, file, offset as i64) };
        assert_ne!(base, libc::MAP_FAILED);
        Mapped { base: base.cast(), size }
    }

    /// Rings the doorbell, and waits for a completion.
    fn does(&self, qp: u32, cq: &Mapped) -> Wc {
        self.ask::<u32>(POST_SEND, &[qp, 0, 0, 0]).unwrap();
        cq.take()
    }
}

/// A queue, as the provider maps it.
struct Mapped {
    base: *mut u8,
    size: usize,
}

const PRODUCER: usize = 128;
const CONSUMER: usize = 256;

impl Mapped {
    fn number(&self, at: usize) -> &AtomicU32 {
        // SAFETY: it is in the mapping, aligned; the device sees it as an atomic, too.
        unsafe { &*self.base.add(at).cast() }
    }

    fn slot(&self, index: u32) -> *mut u8 {
        let (log2, mask) = (self.number(0).load(Ordering::Relaxed), self.number(4).load(Ordering::Relaxed));
        // SAFETY: so far does the queue reach.
        unsafe { self.base.add(384 + (((index & mask) as usize) << log2)) }
    }

    fn post(&self, request: &impl Pod, tail: &[u8]) {
        let bytes = [bytes_of(request), tail].concat();
        let index = self.number(PRODUCER).load(Ordering::Acquire);
        // SAFETY: the tests post nothing longer than a slot.
        unsafe { self.slot(index).copy_from(bytes.as_ptr(), bytes.len()) };
        self.number(PRODUCER).store(index + 1, Ordering::Release);
    }

    fn take(&self) -> Wc {
        let (begun, index) = (Instant::now(), self.number(CONSUMER).load(Ordering::Acquire));
        while self.number(PRODUCER).load(Ordering::Acquire) == index {
            assert!(begun.elapsed() < Duration::from_secs(60), "no completion comes");
            std::thread::yield_now();
        }
        self.number(CONSUMER).store(index + 1, Ordering::Release);
        // SAFETY: a slot is longer than that.
        unsafe { self.slot(index).cast::<Wc>().read_unaligned() }
    }

    fn scribble(&self, at: usize, word: u32) {
        self.number(at % self.size & !3).store(word, Ordering::Release);
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: our own mapping.
        unsafe { libc::munmap(self.base.cast(), self.size) };
    }
}

#[test]
fn windows_keep_their_region() {
    if !acts() {
        return on_the_device("windows_keep_their_region");
    }
    let device = Device::open();
    for access in [1 | 2 | 4 | 8 | 16, 256, 1 << 20] {
        let region = device.register(access).unwrap();
        device.tell(DEREG_MR, &region.mr_handle).unwrap();
    }
    assert_eq!([0, 3, 255].map(|kind| device.window(kind).map(|_| ())), [Err(EINVAL); 3]);
    let windows = [1, 2].map(|kind| device.window(kind).unwrap());
    assert!(windows[0].rkey >> 8 != windows[1].rkey >> 8);
    // They are in their domain.
    assert_eq!(device.tell(DEALLOC_PD, &device.pd), Err(EBUSY));
    for window in windows {
        device.tell(DEALLOC_MW, &window.mw_handle).unwrap();
        assert_eq!(device.tell(DEALLOC_MW, &window.mw_handle), Err(EINVAL));
    }
    device.tell(DEALLOC_PD, &device.pd).unwrap();
}

/// The variable that says that this program runs on rdma_rxe of Linux 6.1, in the lab.
pub const ON_KERNEL: &str = "COMMANDS_TEST_ON_KERNEL";

/// The other test of this: kernel.rs has the same asked of rdma_rxe.
#[test]
fn what_is_not_there_is_refused() {
    if !acts() {
        return on_the_device("what_is_not_there_is_refused");
    }
    let is_kernel = std::env::var_os(ON_KERNEL).is_some();
    let (device, expected) = (Device::open(), |here, kernel| if is_kernel { kernel } else { here });
    let errno = |result: Result<(), i32>| result.err().unwrap_or(0);
    const OPTIONAL: [u32; 2] = [1 << 20, 1 << 29];
    const UNKNOWN: [u32; 4] = [0x400, 1 << 19, 1 << 30, 1 << 31];
    let bits = || (0..10).map(|bit| 1 << bit).chain(OPTIONAL).chain(UNKNOWN);

    for bit in bits() {
        let made = device.register(bit).and_then(|region| device.tell(DEREG_MR, &region.mr_handle));
        let wanted = match bit {
            // Local write, read, bind, and what may be ignored.
            1 | 4 | 16 => 0,
            _ if OPTIONAL.contains(&bit) => 0,
            // Zero based, huge pages.
            0x20 | 0x80 => expected(EOPNOTSUPP, 0),
            // To be flushed: everywhere, and to where it outlives a power cut.
            0x100 => expected(0, EINVAL),
            0x200 => expected(EOPNOTSUPP, EINVAL),
            // Others' writes and atomics want the own; paging on demand; what nobody knows.
            _ => EINVAL,
        };
        assert_eq!(errno(made), wanted, "a region with access {bit:#x}");
    }

    let (cq, _completions) = device.cq();
    let create = |qp_type| {
        let (pd_handle, send_cq_handle, recv_cq_handle) = (device.pd, cq, cq);
        let cap = Cap { max_send_wr: 1, max_recv_wr: 1, max_send_sge: 1, max_recv_sge: 1, max_inline_data: 0 };
        let asked = CreateQp { pd_handle, send_cq_handle, recv_cq_handle, cap, qp_type, ..CreateQp::zeroed() };
        // The rest is of the extended command.
        let asked: [u32; 12] = bytemuck::pod_read_unaligned(&bytes_of(&asked)[..48]);
        device.ask::<[u64; 8]>(CREATE_QP, &asked).map(|made| made[0] as u32)
    };
    for bit in bits() {
        let qp_handle = create(2).unwrap();
        let state = QpState { qp_state: 1, port_num: 1, qp_access_flags: bit, ..QpState::zeroed() };
        let to = ModifyQp { qp_handle, attr_mask: 0b11_1001, state, ..ModifyQp::zeroed() };
        let is_known = ![0x20, 0x80].contains(&bit) && !UNKNOWN.contains(&bit);
        let wanted = if is_known { 0 } else { expected(EINVAL, 0) };
        assert_eq!(errno(device.tell(MODIFY_QP, &to)), wanted, "a queue pair with access {bit:#x}");
        device.ask::<[u32; 2]>(DESTROY_QP, &[qp_handle, 0]).unwrap();
    }
    // RC, UC, UD; RAW_PACKET and XRC_SEND; XRC_RECV, whose domain is none, and what nobody knows.
    for (kind, wanted) in [(2, 0), (3, 0), (4, 0), (8, EOPNOTSUPP), (9, EOPNOTSUPP), (10, EINVAL), (5, EINVAL)] {
        assert_eq!(errno(create(kind).map(|_| ())), wanted, "a queue pair of type {kind}");
    }
    for (srq_type, wanted) in [(0, 0), (1, EINVAL), (2, EOPNOTSUPP), (3, EOPNOTSUPP)] {
        let (pd_handle, cq_handle) = (device.pd, cq);
        let asked = CreateXsrq { pd_handle, cq_handle, srq_type, max_wr: 1, max_sge: 1, ..CreateXsrq::zeroed() };
        let made = device.ask::<[u64; 5]>(CREATE_XSRQ, &asked);
        assert_eq!(errno(made.map(|_| ())), wanted, "a shared queue of type {srq_type}");
    }
    for command in [OPEN_XRCD, OPEN_QP] {
        assert_eq!(device.ask::<[u64; 4]>(command, &[0u64; 4]).err(), Some(EOPNOTSUPP), "{:?}", name(command));
    }
    assert_eq!(device.tell(CLOSE_XRCD, &0u32), Err(EOPNOTSUPP));
}

fn request(opcode: u32, ex: u32, wr: &impl Pod, dma: Dma) -> SendWqe {
    let mut wqe = SendWqe { wr_id: 7, opcode, send_flags: 2, ex, dma, ..SendWqe::zeroed() };
    bytemuck::bytes_of_mut(&mut wqe.wr)[..bytes_of(wr).len()].copy_from_slice(bytes_of(wr));
    wqe
}

/// What newer requests say is where the provider puts it, and completions tell what they should.
#[test]
fn requests_are_understood() {
    if !acts() {
        return on_the_device("requests_are_understood");
    }
    let device = Device::open();
    let (region, window) = (device.register(0x11f).unwrap(), device.window(2).unwrap());
    let (cq, completions) = device.cq();
    let (qp, [receives, sends]) = device.qp(2, cq);
    let (start, bytes) = (device.buffer.start() as u64, |length| Dma { length, resid: length, ..Dma::zeroed() });

    // Windows: the second one lies on the buffer's second word, and opens it to WRITEs.
    let rkey = window.rkey ^ 1;
    let (mr_lkey, mw_rkey) = (region.lkey, window.rkey);
    let bind = BindMw { addr: start + 8, length: 8, mr_lkey, mw_rkey, rkey, access: 2 };
    sends.post(&request(8, 0, &bind, bytes(0)), &[]);
    let wc = device.does(qp, &completions);
    assert_eq!((wc.wr_id, wc.status, wc.opcode), (7, 0, 5));
    // Bits that mean nothing: no window has them.
    let mw_rkey = device.window(2).unwrap().rkey;
    for access in [1 << 7, 1 << 10, 1 << 31] {
        let (other, [_, sends]) = device.qp(2, cq);
        sends.post(&request(8, 0, &BindMw { mw_rkey, access, ..bind }, bytes(0)), &[]);
        assert_eq!(device.does(other, &completions).status, 6, "{access:#x}");
    }
    // Not while one lies on it.
    assert_eq!(device.tell(DEREG_MR, &region.mr_handle), Err(EINVAL));

    // ATOMIC WRITE: its bytes come after the request, whatever its flags say.
    let to = Rdma { remote_addr: start + 8, rkey, reserved: 0 };
    sends.post(&request(15, 0, &to, bytes(8)), b"eight by");
    let wc = device.does(qp, &completions);
    assert_eq!((wc.status, wc.opcode), (0, 9));
    // SAFETY: a word of the buffer, which the device has written.
    assert_eq!(unsafe { device.buffer.start().add(1).read_volatile() }.to_ne_bytes(), *b"eight by");

    let flush = Flush { remote_addr: start, length: 16, rkey: region.rkey, kind: 1, level: 0, reserved: [0; 6] };
    sends.post(&request(14, 0, &flush, bytes(0)), &[]);
    let wc = device.does(qp, &completions);
    assert_eq!((wc.status, wc.opcode), (0, 8));

    // SEND with invalidate, to ourselves: the window is gone, and the receiver is told which.
    receives.post(&RecvWqe { wr_id: 8, ..RecvWqe::zeroed() }, &[]);
    sends.post(&request(9, rkey, &0u64, bytes(0)), &[]);
    let mut both = [device.does(qp, &completions), completions.take()];
    both.sort_by_key(|wc| wc.wr_id);
    assert_eq!(both.map(|wc| (wc.status, wc.opcode)), [(0, 0), (0, 128)]);
    assert_eq!((both[1].wc_flags & 0b1010, both[1].ex), (8, rkey));
    sends.post(&request(7, rkey, &0u64, bytes(0)), &[]);
    let wc = device.does(qp, &completions);
    assert_eq!(wc.status, 2, "a key that is not valid cannot be made invalid");
    device.tell(DEREG_MR, &region.mr_handle).unwrap();
}

#[test]
fn a_shared_queue_gets_another_size() {
    if !acts() {
        return on_the_device("a_shared_queue_gets_another_size");
    }
    let device = Device::open();
    let (srq_handle, ring) = device.srq(15);
    for wr_id in 0..10 {
        ring.post(&RecvWqe { wr_id, ..RecvWqe::zeroed() }, &[]);
    }
    let resize = |attr_mask, max_wr, srq_limit| {
        let mut place = MmInfo::zeroed();
        let mmap_info_addr = &mut place as *mut MmInfo as u64;
        let asked = ModifySrq { srq_handle, attr_mask, max_wr, srq_limit, mmap_info_addr };
        device.tell(MODIFY_SRQ, &asked).map(|()| place)
    };
    // Too small for what waits, for the limit, nothing at all, too large, nowhere to tell.
    for (mask, most, limit) in [(1, 7, 0), (3, 15, 16), (1, 0, 0), (1, 16_385, 0), (2, 0, 16)] {
        assert_eq!(resize(mask, most, limit).map(|_| ()), Err(EINVAL), "{mask} {most} {limit}");
    }
    let nowhere = ModifySrq { srq_handle, attr_mask: 1, max_wr: 40, srq_limit: 0, mmap_info_addr: 8 };
    assert_eq!(device.tell(MODIFY_SRQ, &nowhere), Err(EFAULT));
    for (mask, most, capacity) in [(3, 40, 63), (1, 10, 15), (1, 100, 127)] {
        let place = resize(mask, most, 3).unwrap();
        let ring = device.map(place.offset, place.size.into());
        let told: QuerySrqResp = device.ask(QUERY_SRQ, &[srq_handle, 0]).unwrap();
        assert_eq!((told.max_wr, told.srq_limit), (capacity, 3));
        // What waited waits there, in its order.
        assert_eq!([PRODUCER, CONSUMER].map(|at| ring.number(at).load(Ordering::Acquire)), [10, 0]);
        // SAFETY: slots of the ring.
        let ids: Vec<u64> = (0..10).map(|n| unsafe { ring.slot(n).cast::<u64>().read() }).collect();
        assert_eq!(ids, (0..10).collect::<Vec<u64>>());
    }
}

#[test]
fn a_queue_pair_in_a_group_stays() {
    if !acts() {
        return on_the_device("a_queue_pair_in_a_group_stays");
    }
    let device = Device::open();
    let (cq, completions) = device.cq();
    let [(rc, _), (first, _), (second, [receives, _]), (sender, [_, sends])] =
        [2, 4, 4, 4].map(|kind| device.qp(kind, cq));
    let group = |number: u16| Ipv4Addr::new(239, 47, (number >> 8) as u8, number as u8).to_ipv6_mapped().octets();
    let member = |qp_handle, gid| AttachMcast { gid, qp_handle, ..AttachMcast::zeroed() };
    // No group, no queue pair for datagrams, no queue pair.
    let other = Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets();
    for wrong in [member(first, other), member(rc, group(1)), member(sender + 1, group(1))] {
        assert_eq!(device.tell(ATTACH_MCAST, &wrong), Err(EINVAL));
        assert_eq!(device.tell(DETACH_MCAST, &wrong), Err(EINVAL));
    }
    let over_ipv6 = Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, 1).octets();
    assert_eq!(device.tell(ATTACH_MCAST, &member(first, over_ipv6)), Err(EOPNOTSUPP));
    for qp in [first, first, second] {
        device.tell(ATTACH_MCAST, &member(qp, group(1))).unwrap();
        assert_eq!(device.ask::<u32>(DESTROY_QP, &[qp, 0]), Err(EBUSY));
    }
    device.tell(DETACH_MCAST, &member(first, group(1))).unwrap();
    assert_eq!(device.tell(DETACH_MCAST, &member(first, group(1))), Err(EINVAL));

    // The one that is left gets what another sends there, with the group's address in front.
    let region = device.register(1).unwrap();
    let piece = RxeSge { addr: device.buffer.start() as u64, length: 64, lkey: region.lkey };
    let dma = Dma { length: 64, resid: 64, num_sge: 1, ..Dma::zeroed() };
    receives.post(&RecvWqe { wr_id: 9, dma, ..RecvWqe::zeroed() }, bytes_of(&piece));
    let attr = AhAttr { dgid: group(1), is_global: 1, port_num: 1, ..AhAttr::zeroed() };
    let handle: [u32; 3] =
        device.ask(CREATE_AH, &CreateAh { pd_handle: device.pd, attr, ..CreateAh::zeroed() }).unwrap();
    let to = Ud { remote_qpn: 0xff_ffff, remote_qkey: 0, pkey_index: 0, reserved: 0, ah_num: handle[0] };
    let inline = SendWqe { send_flags: 2 | 8, ..request(2, 0, &to, Dma { length: 5, resid: 5, ..Dma::zeroed() }) };
    sends.post(&inline, b"hello");
    let mut both = [device.does(sender, &completions), completions.take()];
    both.sort_by_key(|wc| wc.wr_id);
    assert_eq!(both.map(|wc| (wc.status, wc.opcode)), [(0, 0), (0, 128)]);
    assert_eq!((both[1].qp_num, both[1].src_qp, both[1].byte_len), (second, sender, 45));
    // SAFETY: the buffer is longer.
    let got = unsafe { device.buffer.start().cast::<[u8; 45]>().read_volatile() };
    assert_eq!((&got[36..40], &got[40..]), (&[239, 47, 0, 1][..], &b"hello"[..]));

    // As many as there can be, of both; and all of them go with the device.
    let groups = (1..).take_while(|number| device.tell(ATTACH_MCAST, &member(second, group(*number))) != Err(ENOMEM));
    assert_eq!(groups.count(), Port::GROUPS);
    let members = (0..).take_while(|_| device.tell(ATTACH_MCAST, &member(device.qp(4, cq).0, group(1))) != Err(ENOMEM));
    assert_eq!(1 + members.count(), Groups::MEMBERS);
    // A mapping keeps an open file, too.
    drop((device, completions, receives, sends));
    let again = Device::open();
    let (cq, _completions) = again.cq();
    let (last, begun) = (member(again.qp(4, cq).0, group(1)), Instant::now());
    // The device hears of it a little later.
    while again.tell(ATTACH_MCAST, &last) == Err(ENOMEM) {
        assert!(begun.elapsed() < Duration::from_secs(60), "groups are left behind");
        std::thread::yield_now();
    }
    again.tell(DETACH_MCAST, &last).unwrap();
}

/// A word of a command, most of them what one may expect there.
#[derive(Clone, Copy, Debug)]
enum Word {
    Plain(u32),
    /// One of the handles that there are.
    Handle(usize),
    /// Half of an address of the program's.
    Low,
    High,
}

fn word() -> impl Strategy<Value = Word> {
    let plain =
        prop_oneof![4 => 0..40u32, 1 => any::<u32>(), 1 => (0..32u32).prop_map(|bit| 1 << bit)].prop_map(Word::Plain);
    prop_oneof![4 => plain, 3 => (0..9usize).prop_map(Word::Handle), 1 => Just(Word::Low), 1 => Just(Word::High)]
}

/// Number, whether it is extended, its words, and what it says of its lengths; then words for queues.
type Hostile = (u32, bool, Vec<Word>, u16, u16, Vec<(usize, u32)>);

fn hostile() -> impl Strategy<Value = Hostile> {
    let number = prop_oneof![3 => 0..42u32, 1 => Just(POST_SEND), 1 => Just(MODIFY_QP), 1 => any::<u32>()];
    let words = prop::collection::vec(word(), 0..40);
    let queues = prop::collection::vec((any::<usize>(), prop_oneof![0..40u32, any::<u32>()]), 0..12);
    (number, any::<bool>(), words, prop_oneof![0..80u16, any::<u16>()], prop_oneof![0..80u16, any::<u16>()], queues)
}

/// Whatever is written to an open uverbs0, or into its queues, it is done, or answered with an errno; and the device serves on.
#[test]
fn hostile_commands() {
    if !acts() {
        return on_the_device("hostile_commands");
    }
    let mut runner = TestRunner::new(Config { cases: 512, failure_persistence: None, ..Config::default() });
    let run = |commands: Vec<Hostile>| {
        let device = Device::open();
        let (region, window) = (device.register(31).unwrap(), device.window(2).unwrap());
        let (cq, _completions) = device.cq();
        let ((srq, shared), (rc, rc_rings), (ud, ud_rings)) = (device.srq(15), device.qp(2, cq), device.qp(4, cq));
        let rings: Vec<Mapped> = [shared].into_iter().chain(rc_rings).chain(ud_rings).collect();
        let handles = [device.pd, region.mr_handle, region.lkey, window.mw_handle, window.rkey, cq, srq, rc, ud];
        let address = device.buffer.start() as u64;
        for (number, extended, words, input, output, queues) in commands {
            for (at, word) in queues {
                rings[at % rings.len()].scribble(at / rings.len() % 2048, word);
            }
            let words = words.into_iter().map(|word| match word {
                Word::Plain(word) => word,
                Word::Handle(which) => handles[which],
                Word::Low => address as u32,
                Word::High => (address >> 32) as u32,
            });
            let command = if extended { number | EXTENDED } else { number };
            let header = Header { command, in_words: input, out_words: output };
            let words: Vec<u32> = words.collect();
            match device.write(&[bytes_of(&header), bytemuck::cast_slice(&words)].concat()) {
                Ok(()) => {}
                Err(errno) => {
                    prop_assert!(
                        [EINVAL, EFAULT, EOPNOTSUPP, EBUSY, ENOMEM, EMFILE, EBADF].contains(&errno),
                        "{errno}"
                    );
                }
            }
        }
        // The program itself closes what it was given, the device among it.
        drop(rings);
        let descriptor = std::os::fd::IntoRawFd::into_raw_fd(device.file) as u32;
        assert!((512..1024).contains(&descriptor));
        // SAFETY: these numbers are the device's.
        assert_eq!(unsafe { libc::syscall(libc::SYS_close_range, 512, 1023, 0) }, 0);
        Ok(())
    };
    runner.run(&prop::collection::vec(hostile(), 1..60), run).unwrap();
    Device::open();
}
