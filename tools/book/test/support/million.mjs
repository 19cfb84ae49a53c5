// A capture of very many packets, as a file: one connection, WRITEs of 256 bytes and their ACKs, whose ICRCs fit.
import { closeSync, openSync, writeSync } from "node:fs";

/** Ethernet and IPv4: 10.47.91.1 to 10.47.91.2. */
const LOWER = Buffer.from("02000000000202000000000108004500000000004000401100000a2f5b010a2f5b02", "hex");

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? (byte >>> 1) ^ 0xedb88320 : byte >>> 1;
  return byte;
});

/** The CRC-32 of Ethernet. Node has one from version 22 on. */
function crc32(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) sum = TABLE[(sum ^ byte) & 0xff] ^ (sum >>> 8);
  return (sum ^ 0xffffffff) >>> 0;
}

/** A RoCEv2 frame: the headers behind the BTH, and the payload, in `rest`. */
function frame(isAnswer, opcode, qp, psn, rest) {
  const frame = Buffer.alloc(14 + 20 + 8 + 12 + rest.length + 4);
  LOWER.copy(frame);
  if (isAnswer) [frame[29], frame[33]] = [2, 1];
  frame.writeUInt16BE(frame.length - 14, 16);
  frame.writeUInt16BE(50_000, 34);
  frame.writeUInt16BE(4791, 36);
  frame.writeUInt16BE(frame.length - 34, 38);
  frame.writeUInt8(opcode, 42);
  frame.writeUInt16BE(0xffff, 44);
  frame.writeUInt32BE(qp, 46);
  frame.writeUInt32BE((isAnswer ? 0 : 0x80000000) + psn, 50);
  rest.copy(frame, 54);
  // The ICRC covers all from the IP header on; what changes on the way counts as ones (IBTA annex A17, section 9).
  const covered = Buffer.concat([Buffer.alloc(8, 0xff), frame.subarray(14, -4)]);
  for (const at of [9, 16, 18, 19, 34, 35, 40]) covered[at] = 0xff;
  frame.writeUInt32LE(crc32(covered), frame.length - 4);
  return frame;
}

/** Writes the capture. */
export function write(path, packets) {
  const file = openSync(path, "w");
  const head = Buffer.alloc(24);
  [0xa1b23c4d, 0x00040002, 0, 0, 65_536, 1].forEach((word, at) => head.writeUInt32LE(word, at * 4));
  writeSync(file, head);
  const reth = Buffer.concat([Buffer.from("00005500000000000000010000000100", "hex"), Buffer.alloc(256, 7)]);
  const aeth = Buffer.from("1f000000", "hex");
  for (let done = 0; done < packets; ) {
    const pieces = [];
    for (const end = Math.min(packets, done + 10_000); done < end; done++) {
      const [psn, isAnswer] = [(done >> 1) & 0xffffff, done % 2 === 1];
      const bytes = isAnswer ? frame(true, 0x11, 0x21, psn, aeth) : frame(false, 0x0a, 0x22, psn, reth);
      const record = Buffer.alloc(16);
      [Math.floor(done / 100_000), (done % 100_000) * 10_000, bytes.length, bytes.length].forEach((word, at) => record.writeUInt32LE(word, at * 4));
      pieces.push(record, bytes);
    }
    writeSync(file, Buffer.concat(pieces));
  }
  closeSync(file);
}
