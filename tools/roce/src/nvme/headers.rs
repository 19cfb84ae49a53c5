//! What NVMe over RDMA puts into messages and into a connection's private data, declared field by field. Unlike everything around it, it's
//! little-endian.

use super::names;
use crate::field::{headers, only, Field};

/// A number of whole bytes.
const fn number(name: &'static str, byte: usize, bytes: usize) -> Field {
    Field::dec(name, (byte, 0), bytes * 8).little_endian()
}

/// The same, of something that is a name.
const fn name(name: &'static str, byte: usize, bytes: usize) -> Field {
    Field::hex(name, (byte, 0), bytes * 8).little_endian()
}

// Every command begins with these.
const OPCODE: Field = Field::hex("Opcode", (0, 0), 8);
const PSDT: Field = Field::dec("PSDT", (1, 0), 2).means(|v| only(v, 1, "the data is where SGL1 says"));
const RESERVED: Field = Field::hex("reserved", (1, 2), 4);
const FUSE: Field = Field::dec("FUSE", (1, 6), 2);
const CID: Field = name("CommandIdentifier", 2, 2);

headers! {
    /// The private data of a ConnectRequest (NVMe RDMA transport, "RDMA_CM_REQUEST").
    pub mod request_data = "NVMe REQ", "NVMe over RDMA, what the host asks for", 32 => {
        number("RecordFormat", 0, 2);
        number("QueueID", 2, 2).means(|v| only(v, 0, "the admin queue")) => QUEUE_ID, "0 for the admin queue, else an I/O queue's.";
        number("HostReceiveQueueSize", 4, 2);
        number("HostSendQueueSize", 6, 2);
        name("ControllerID", 8, 2);
        Field::bytes("reserved", 10, 22);
    }

    /// The private data of the ConnectReply ("RDMA_CM_ACCEPT").
    pub mod accept_data = "NVMe REP", "NVMe over RDMA, what the controller answers", 32 => {
        number("RecordFormat", 0, 2);
        number("ControllerReceiveQueueSize", 2, 2) => CRQSIZE, "How many receives the controller posts.";
        Field::bytes("reserved", 4, 28);
    }

    /// The private data of a ConnectReject ("RDMA_CM_REJECT").
    pub mod reject_data = "NVMe REJ", "NVMe over RDMA, why it's refused", 4 => {
        number("RecordFormat", 0, 2);
        number("Status", 2, 2).means(names::rejection) => STATUS, "Why.";
    }

    /// How each command begins but for those of Fabrics (NVMe base specification, common command format).
    pub mod command = "NVMe command", "the first bytes of a submission queue entry", 24 => {
        OPCODE => COMMAND_OPCODE, "What to do; what it means depends on the queue.";
        PSDT; RESERVED; FUSE;
        CID => COMMAND_ID, "The answer repeats it.";
        number("NamespaceID", 4, 4);
        Field::bytes("CDW2-3", 8, 8);
        name("MetadataPointer", 16, 8);
    }

    /// How a command of Fabrics begins.
    pub mod fabrics = "Fabrics command", "the first bytes of a submission queue entry", 24 => {
        OPCODE.means(|v| only(v, 0x7f, "a command of NVMe over Fabrics"));
        PSDT; RESERVED; FUSE;
        CID;
        Field::hex("FabricsCommandType", (4, 0), 8).means(|v| names::fabrics(v as u8).unwrap_or_default().into())
            => COMMAND_TYPE, "Which one it is.";
        Field::bytes("reserved", 5, 19);
    }

    /// Where a command's data is: in memory that has a key.
    pub mod keyed_sgl = "SGL1", "keyed data block: where the data is, in the host's memory", 16 => {
        name("Address", 0, 8);
        number("Length", 8, 3) => LENGTH, "Bytes.";
        name("Key", 11, 4) => KEY, "The key that opens it: an R_Key.";
        Field::hex("DescriptorType", (15, 0), 4).means(|v| only(v, 4, "keyed data block"));
        Field::hex("DescriptorSubType", (15, 4), 4).means(|v| only(v, 0xf, "the answer is to invalidate the key"));
    }

    /// Where a command's data is: in the capsule, behind the command.
    pub mod offset_sgl = "SGL1", "data block: where the data is, in this capsule", 16 => {
        number("Offset", 0, 8);
        number("Length", 8, 4);
        Field::bytes("reserved", 12, 3);
        Field::hex("DescriptorType", (15, 0), 4).means(|v| only(v, 0, "data block"));
        Field::hex("DescriptorSubType", (15, 4), 4).means(|v| only(v, 1, "the address is an offset into the capsule"));
    }

    /// Sixteen bytes where other commands say where their data is.
    pub mod no_sgl = "reserved", "no data", 16 => {
        Field::bytes("reserved", 0, 16);
    }

    /// The rest of a command on a queue for blocks that reads or writes some.
    pub mod blocks = "Blocks", "which blocks of the namespace", 24 => {
        number("StartingLBA", 0, 8) => START, "The number of the first block.";
        number("NumberOfBlocks", 8, 2).means(|v| format!("one less than there are: {}", v + 1)) => COUNT, "How many, less one.";
        name("Control", 10, 2);
        name("DatasetManagement", 12, 4);
        name("CDW14", 16, 4);
        name("CDW15", 20, 4);
    }

    /// The rest of any other command.
    pub mod dwords = "CDW10-15", "what this command needs to know", 24 => {
        name("CDW10", 0, 4);
        name("CDW11", 4, 4); name("CDW12", 8, 4); name("CDW13", 12, 4); name("CDW14", 16, 4); name("CDW15", 20, 4);
    }

    /// The rest of a Connect.
    pub mod connect = "Connect", "which queue this connection is", 24 => {
        number("RecordFormat", 0, 2);
        number("QueueID", 2, 2).means(|v| only(v, 0, "the admin queue")) => QUEUE_ID, "0 for the admin queue.";
        number("SubmissionQueueSize", 4, 2).means(|v| format!("one less than there are: {}", v + 1));
        Field::hex("ConnectAttributes", (6, 0), 8);
        Field::hex("reserved", (7, 0), 8);
        number("KeepAliveTimeout", 8, 4).means(|v| format!("{v} ms"));
        Field::bytes("reserved", 12, 12);
    }

    /// The rest of a Property Get.
    pub mod property_get = "Property Get", "which register", 24 => {
        Field::hex("Attributes", (0, 0), 8).means(|v| only(v, 1, "eight bytes") + &only(v, 0, "four bytes"));
        Field::bytes("reserved", 1, 3);
        name("Offset", 4, 4).means(names::property) => OFFSET, "Which register of the controller.";
        Field::bytes("reserved", 8, 16);
    }

    /// The rest of a Property Set.
    pub mod property_set = "Property Set", "which register, and its new value", 24 => {
        Field::hex("Attributes", (0, 0), 8).means(|v| only(v, 1, "eight bytes") + &only(v, 0, "four bytes"));
        Field::bytes("reserved", 1, 3);
        name("Offset", 4, 4).means(names::property) => OFFSET, "Which register of the controller.";
        name("Value", 8, 8) => VALUE, "What to write there.";
        Field::bytes("reserved", 16, 8);
    }

    /// How it went (NVMe base specification, completion queue entry).
    pub mod completion = "NVMe completion", "a completion queue entry", 16 => {
        name("Result", 0, 8);
        number("SQHeadPointer", 8, 2);
        number("SQIdentifier", 10, 2);
        CID_OF_COMPLETION => COMMAND_ID, "Which command is answered.";
        name("Status", 14, 2).means(names::status) => STATUS, "How it went.";
    }
}

const CID_OF_COMPLETION: Field = name("CommandIdentifier", 12, 2);
