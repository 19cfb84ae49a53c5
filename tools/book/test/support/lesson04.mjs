// Where the WRITE and its ACK are in the bundled run of lesson 04: their frame numbers, which each recording has its own of.

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { REPOSITORY, WIRE } from "./site.mjs";

const shown = execFileSync(WIRE, ["show", join(REPOSITORY, "captures/04_rdma_write.pcapng")], { encoding: "utf8" });
const write = /^ *(\d+) .*─ RDMA Write Only /m.exec(shown);

export const WRITE = Number(write[1]);
export const ACK = Number(/^ *(\d+) .*Acknowledge /m.exec(shown.slice(write.index))[1]);
