//! Memory windows: keys for parts of regions, which requests can make valid and invalid while the program runs (specification,
//! volume 1, 10.6.7).
//!
//! A bound window is just one more region with a key of its own, cut out of the region that it's bound to.

use super::{Access, Memory, Refusal, Region};

/// How windows are bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    /// Type 1 serves all queue pairs of its protection domain and can be bound again and again. Bound to no bytes, it opens
    /// nothing.
    One,
    /// Type 2B serves one queue pair. Before it can be bound again it must have been made invalid, which a message can also do.
    Two,
}

/// What a request to bind says (`ibv_mw_bind_info`), and the keys that it's about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bind {
    /// The window's present key.
    pub window: u32,
    /// The lower eight bits of its new key.
    pub next: u8,
    /// The lkey of the region to bind it to.
    pub region: u32,
    pub address: u64,
    pub length: u64,
    pub access: Access,
}

#[derive(Debug)]
pub(super) struct Window {
    kind: WindowKind,
    key: u32,
    pub(super) pd: u32,
    /// The key of the region that it's bound to, while it's bound.
    on: Option<u32>,
    /// The queue pair that it's bound for, if it's bound for one.
    qp: Option<u32>,
}

impl Window {
    /// Whether a queue pair may use it on behalf of its peer. A program's own requests can't use it.
    pub(super) fn serves(&self, qp: Option<u32>) -> bool {
        qp.is_some() && (self.qp.is_none() || self.qp == qp)
    }
}

impl Memory {
    /// Makes a window and returns its key, which opens nothing yet (`ibv_alloc_mw`).
    pub fn allocate_window(&mut self, kind: WindowKind, pd: u32, random: u8) -> u32 {
        let index = self.next_index();
        let key = index << 8 | u32::from(random);
        self.windows.insert(index, Window { kind, key, pd, on: None, qp: None });
        key
    }

    /// Takes a window away (`ibv_dealloc_mw`). Its index identifies it, whatever its key has become. False if there's none.
    pub fn deallocate_window(&mut self, key: u32) -> bool {
        let is_window = self.windows.remove(&(key >> 8)).is_some();
        if is_window {
            self.regions.remove(&(key >> 8));
        }
        is_window
    }

    /// Binds a window, for a queue pair with this number and protection domain.
    ///
    /// # Errors
    /// Why it can't be bound (C10-72 to C10-75). Nothing is changed then.
    pub fn bind(&mut self, bind: Bind, qp: u32, pd: u32) -> Result<(), Refusal> {
        // The program names its own region, so it uses the lkey.
        let bind = Bind { region: self.other_key(bind.region), ..bind };
        let window = self.window(bind.window)?;
        if window.pd != pd {
            return Err(Refusal::Pd);
        }
        let (kind, key) = (window.kind, bind.window & !0xff | u32::from(bind.next));
        if !bind.access.suit_windows() {
            return Err(Refusal::Access);
        }
        let may_be_bound = match kind {
            WindowKind::One => !bind.access.allow(Access::ZERO_BASED),
            WindowKind::Two => window.on.is_none() && bind.length > 0,
        };
        if !may_be_bound {
            return Err(Refusal::Window);
        }
        let (mut on, qp) = (None, (kind == WindowKind::Two).then_some(qp));
        if bind.length == 0 {
            self.regions.remove(&(key >> 8));
        } else {
            let part = self.part(bind, pd)?;
            self.regions.insert(key >> 8, (key, part));
            on = Some(bind.region);
        }
        self.windows.insert(key >> 8, Window { kind, key, pd, on, qp });
        Ok(())
    }

    /// The part of a region that the window will be.
    fn part(&self, bind: Bind, pd: u32) -> Result<Region, Refusal> {
        let Bind { address, length, access, .. } = bind;
        let whole = self.get(bind.region).filter(|_| !self.is_window(bind.region)).ok_or(Refusal::Key)?;
        let writes = access.0 & (Access::REMOTE_WRITE.0 | Access::REMOTE_ATOMIC.0) != 0;
        if whole.pd != pd {
            return Err(Refusal::Pd);
        }
        if !whole.access.allow(Access::MW_BIND) || (writes && !whole.access.allow(Access::LOCAL_WRITE)) {
            return Err(Refusal::Access);
        }
        let offset = address.checked_sub(whole.va).ok_or(Refusal::Bounds)?;
        if offset.checked_add(length).map_or(true, |end| end > whole.length) {
            return Err(Refusal::Bounds);
        }
        let va = if access.allow(Access::ZERO_BASED) { 0 } else { address };
        Ok(Region { start: whole.start.wrapping_add(offset), va, length, access: access.of_peers(), ..whole.clone() })
    }

    /// Makes a key invalid, for the queue pair with this number. It must be the key of a type 2 window bound for that queue pair.
    /// Requests can invalidate no other window, and no region that a program has registered; rdma_rxe does the same (Linux 6.12).
    ///
    /// # Errors
    /// Why it can't be made invalid.
    pub fn invalidate(&mut self, key: u32, qp: u32) -> Result<(), Refusal> {
        if self.window(key)?.qp != Some(qp) {
            return Err(Refusal::Window);
        }
        self.regions.remove(&(key >> 8));
        if let Some(window) = self.windows.get_mut(&(key >> 8)) {
            (window.on, window.qp) = (None, None);
        }
        Ok(())
    }

    fn window(&self, key: u32) -> Result<&Window, Refusal> {
        self.windows.get(&(key >> 8)).filter(|window| window.key == key).ok_or(Refusal::Key)
    }

    fn is_window(&self, key: u32) -> bool {
        self.windows.contains_key(&(key >> 8))
    }

    /// Whether a window is bound to the region with this key.
    pub fn bears_window(&self, key: u32) -> bool {
        self.windows.values().any(|window| window.on == Some(key))
    }
}
