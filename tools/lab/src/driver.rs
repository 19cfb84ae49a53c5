//! Linux has two RDMA devices in software, and the machines of a run have one of them: SoftRoCE or SoftiWARP.

use clap::ValueEnum;

/// The driver of the machines' RDMA device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum)]
pub enum Driver {
    /// SoftRoCE: RDMA in UDP.
    #[default]
    Rxe,
    /// SoftiWARP: RDMA in TCP.
    Siw,
}

impl Driver {
    pub const ALL: [Self; 2] = [Self::Rxe, Self::Siw];

    /// What `rdma link` calls it, and libibverbs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rxe => "rxe",
            Self::Siw => "siw",
        }
    }

    /// Its kernel module.
    pub fn module(self) -> &'static str {
        match self {
            Self::Rxe => "rdma_rxe",
            Self::Siw => "siw",
        }
    }

    /// The module that computes its checksum. Older kernels ask the crypto layer for it by name, so no dependency line mentions it.
    /// Newer ones have neither the question nor the module.
    pub fn checksum(self) -> &'static str {
        match self {
            Self::Rxe => "crc32_generic",
            Self::Siw => "crc32c_generic",
        }
    }

    /// What people call it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Rxe => "SoftRoCE",
            Self::Siw => "SoftiWARP",
        }
    }

    /// What a lesson can't do without and this driver hasn't.
    pub fn lacks(self, lesson: &str) -> Option<&'static str> {
        let lacking = match lesson {
            "01" => {
                "connections without a queue pair, and this lesson's client knocks without one. In iWARP a connection is a queue \
                 pair's TCP stream, so begin with lesson-02"
            }
            "08" => "queue pairs that a program moves by hand, because the connection manager has to hand over the TCP stream",
            "09" => "immediate data and atomic operations",
            "10" => "room for that many bytes inline in a request: it has 80, and this lesson's queue pair asks for 256",
            "11" => "datagrams: its queue pairs are all connected",
            "13" | "20" => "immediate data",
            _ => return None,
        };
        Some(lacking).filter(|_| self == Self::Siw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softroce_has_all_that_lessons_need() {
        let lacking =
            |driver: Driver| (1..=20).filter(|lesson| driver.lacks(&format!("{lesson:02}")).is_some()).count();
        assert_eq!(Driver::ALL.map(lacking), [0, 7]);
    }
}
