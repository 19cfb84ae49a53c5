// What happens, in a sentence for somebody who doesn't know the words yet, and what there's room for in a lane.

import { isPacket } from "../player/run.js";

/** How a line of a program begins; the sentence; in a few words, as the program's or the NIC's lane has it. {me} is the node that acts,
 * {other} the one that it has to do with, {1} what the expression has found. */
const PROGRAM = [
  [/^rdma_create_qp/, "The {me}'s program makes a queue pair, the pair of queues through which it hands work to its NIC."],
  [/^ibv_reg_mr len=(\d+) access=.*REMOTE_WRITE.*REMOTE_READ/, "The {me}'s program opens {1} bytes of its memory: the {other} may write and read there if it has the key."],
  [/^ibv_reg_mr len=(\d+) access=.*REMOTE_WRITE/, "The {me}'s program opens {1} bytes of its memory: the {other} may write there if it has the key."],
  [/^ibv_reg_mr len=(\d+) access=.*REMOTE_READ/, "The {me}'s program opens {1} bytes of its memory: the {other} may read there if it has the key."],
  [/^ibv_reg_mr len=(\d+)/, "The {me}'s program opens {1} bytes of its memory to its own NIC, and to nobody else."],
  [/^ibv_dereg_mr/, "The {me}'s program closes that memory again, so the key to it opens nothing any more."],
  [/^into its own memory, at \d+: (".*")/, "The {me}'s program puts {1} into its own memory; nothing has been sent yet."],
  [/^into its own memory/, "The {me}'s program notes in its memory where its bytes are and which key opens them, so that it can tell the {other}."],
  [/^private data/, "The {me}'s program gives its next message about the connection something to carry."],
  [/^rdma_listen/, "The {me}'s program waits for somebody who wants a connection."],
  [/^rdma_connect/, "The {me}'s program asks for a connection, because NICs accept requests only from a partner they know."],
  [/^rdma_accept/, "The {me}'s program agrees to the connection."],
  [/^rdma_disconnect/, "The {me}'s program ends the connection."],
  [/^CM event: CONNECT_REQUEST/, "The {me}'s program hears that somebody wants a connection."],
  [/^CM event: ESTABLISHED/, "The {me}'s program hears that the connection is there."],
  [/^CM event: DISCONNECTED/, "The {me}'s program hears that the {other} has ended the connection."],
  [/^CM event: REJECTED/, "The {me}'s program hears that the {other} doesn't want a connection."],
  [/^CM event: (\w+)/, "The {me}'s program hears that there will be no connection ({1})."],
  [/^ibv_post_recv .*len=(\d+)/, "The {me}'s program sets {1} bytes aside for the next message, because a message that finds no room is turned away.", "makes room for a message"],
  [/^ibv_post_send SEND.* len=(\d+)/, "The {me}'s program hands its NIC a message of {1} bytes; where it will land is up to the {other}.", "asks for a SEND"],
  [/^ibv_post_send RDMA_WRITE_WITH_IMM.* len=(\d+)/, "The {me}'s program asks its NIC to put {1} bytes into the {other}'s memory, and to tell the program there with a number.", "asks for a WRITE"],
  [/^ibv_post_send RDMA_WRITE.* len=(\d+)/, "The {me}'s program asks its NIC to put {1} bytes into the {other}'s memory.", "asks for a WRITE"],
  [/^ibv_post_send RDMA_READ.* len=(\d+)/, "The {me}'s program asks its NIC to fetch {1} bytes from the {other}'s memory.", "asks for a READ"],
  [/^ibv_post_send ATOMIC_FETCH/, "The {me}'s program asks its NIC to add to a number in the {other}'s memory, and to bring back what was there before.", "asks for a FETCH_ADD"],
  [/^ibv_post_send ATOMIC/, "The {me}'s program asks its NIC to replace a number in the {other}'s memory, but only if it's still the one it expects.", "asks for a CMP_SWP"],
  [/^ibv_poll_cq/, "The {me}'s program waits until its NIC reports that something is done.", "waits for its NIC"],
  [/^WC: .*opcode=IBV_WC_RECV byte_len=(\d+)/, "The {me}'s NIC reports to its program that a message of {1} bytes has come.", "hears: a message is here"],
  [/^WC: .*opcode=IBV_WC_RECV_RDMA/, "The {me}'s NIC reports to its program that bytes were written, and hands over the number that came with them.", "hears: bytes are here"],
  [/^WC: .*IBV_WC_SUCCESS/, "The {me}'s NIC reports to its program that the request is done, because the {other}'s NIC said so.", "hears: done"],
  [/^WC: .*status=(IBV_WC_REM_ACCESS_ERR)/, "The {me}'s program hears that its request failed ({1}), because the {other}'s NIC refused it.", "hears: refused"],
  [/^WC: .*status=(IBV_WC_RETRY_EXC_ERR)/, "The {me}'s program hears that its request failed ({1}), because nobody answered, however often it was sent.", "hears: no answer"],
  [/^WC: .*status=(IBV_WC_RNR_RETRY_EXC_ERR)/, "The {me}'s program hears that its message failed ({1}), because the {other} never had room for it.", "hears: no room"],
  [/^WC: .*status=(IBV_WC_WR_FLUSH_ERR)/, "The {me}'s program gets a request back that wasn't finished ({1}), because its queue pair has stopped working.", "gets it back"],
  [/^WC: .*status=(IBV_WC_LOC_LEN_ERR)/, "The {me}'s program hears that a message came which was longer than the room for it ({1}).", "hears: too long"],
  [/^WC: .*status=(IBV_WC_REM_INV_REQ_ERR)/, "The {me}'s program hears that its request failed ({1}), because the {other}'s NIC couldn't carry it out.", "hears: refused"],
  [/^WC: .*status=(IBV_WC_LOC_PROT_ERR)/, "The {me}'s program hears that its request failed ({1}), because its own NIC may not use that memory.", "hears: refused"],
  [/^WC: .*status=(\w+)/, "The {me}'s program hears that its request failed ({1}).", "hears: failed"],
  [/^(\w+): (.*) \(os error/, "{1} fails at once: {2}.", "fails at once"],
  [/machine is off$/, "The {me}'s machine is switched off, so nothing there answers any more."],
];

/** What a NIC decides. */
const DECISIONS = [
  [/no answer to PSN \d+ in time, (.*) retries left/, "No answer has come, so the {me}'s NIC sends its packet again. (Retries left after that: {1}.)", "no answer: sends again"],
  [/no receive was posted; again in (\S+),/, "The {me}'s NIC was turned away, and tries again in {1}.", "turned away: waits"],
  [/^requester: .*fails: IBV_WC_RETRY/, "The {me}'s NIC gives up, because nobody answers.", "gives up"],
  [/^requester: .*fails: IBV_WC_RNR/, "The {me}'s NIC gives up, because it was turned away too often.", "gives up"],
  [/^requester: .*fails: IBV_WC_REM/, "The {me}'s NIC gives the request up, because it was refused.", "refused"],
  [/^requester: .*fails: (\w+)/, "The {me}'s NIC gives the request up ({1}).", "gives up"],
  [/not sent: its own memory: (.*)/, "The {me}'s NIC can't send this, because of its own program's memory: {1}.", "can't send it"],
  [/^requester: PSN .* bytes placed/, "The {me}'s NIC puts the bytes that came into its own program's memory.", "puts bytes into memory"],
  [/^requester: (PSN \d+: )?\w+ complete/, null, "done"],
  [/^requester: PSN \d+ RC/, null, "sends, and waits for an answer"],
  [/PSN sequence error/, "The {me}'s NIC was waiting for an earlier packet, so it knows that one is missing, and asks for it.", "misses a packet"],
  [/a duplicate/, "The {me}'s NIC has had this packet before, so it changes nothing and only answers again.", "had it before: answers again"],
  [/no receive is posted/, "The {me}'s NIC finds no room for this message, because its program has set none aside.", "no room: turns it away"],
  [/no region has this key/, "The {me}'s NIC refuses the packet, because its key opens none of the memory here.", "wrong key: refuses it"],
  [/the region does not allow it/, "The {me}'s NIC refuses the packet, because this part of memory isn't open for that.", "not allowed: refuses it"],
  [/outside the region's bounds/, "The {me}'s NIC refuses the packet, because it reaches beyond the memory that's open.", "too far: refuses it"],
  [/bytes have come, the receive has room/, "The {me}'s NIC refuses the message, because it's longer than the room that was set aside.", "too long: refuses it"],
  [/^responder: PSN \d+ expected, [^:]*: ([^;]*); (NAK.*)/, "The {me}'s NIC refuses the packet: {1}.", "refuses it"],
  [/Read Request: rkey \w+, (\d+) bytes/, "The {me}'s NIC checks the key and takes {1} bytes from memory; its program isn't asked.", "key is right: sends {1} bytes"],
  [/RDMA Write.*: rkey \w+ ok, (\d+) of \d+ bytes/, "The {me}'s NIC checks the key and puts the bytes into memory; its program isn't asked.", "key is right: bytes are in place"],
  [/has room, (\d+) of \d+ bytes/, "The {me}'s NIC puts the message where its program had made room.", "message is in place"],
  [/stood there/, "The {me}'s NIC changes the number in memory in one step, so that nobody can come in between.", "changes the number"],
  [/: RTS to ERR|: RTR to ERR/, "The {me}'s queue pair, its end of the connection, stops working: what its program asks for from now on comes back undone.", "connection stopped"],
  [/aren't a packet, or are damaged/, "The {me}'s NIC throws the packet away, because it was damaged on its way.", "damaged: throws it away"],
  [/^cm .*no answer to \w+, asks again/, "No answer has come, so the {me} asks once more for the connection.", "no answer: asks again"],
  [/^cm .*gives up/, "Nobody answers, so the {me} gives up: there will be no connection.", "gives up"],
  [/came marked/, "The {me}'s NIC sees that a queue on the way was full, and asks the {other} to slow down."],
  [/a CNP; from now on (.*) Mbit/, "The {me}'s NIC slows down to {1} Mbit/s, as it was asked to.", "slows down"],
];

/** A packet: its name, and what it's for. */
const PACKETS = [
  [/^REQ/, "The {me} asks the {other} for a connection."],
  [/^REP/, "The {me} agrees, and says which queue pair it will use."],
  [/^RTU/, "The {me} confirms that it's ready, and with that the connection is made."],
  [/^REJ/, "The {me} doesn't want a connection."],
  [/^DREQ/, "The {me} tells the {other} that this is the end of the connection."],
  [/^DREP/, "The {me} confirms the end of the connection."],
  [/^RDMA Write Only/, "The {me}'s NIC takes the bytes straight from memory and sends them; the packet says where they belong, and brings the key to that place."],
  [/^RDMA Write First/, "The {me}'s NIC sends the bytes in pieces, because they don't fit into one packet; this first piece says where they belong."],
  [/^RDMA Write Middle/, "Another piece of the same WRITE follows."],
  [/^RDMA Write Last/, "The last piece of the WRITE asks for an answer."],
  [/^Send Only/, "The {me}'s NIC sends the message; the packet doesn't say where it should land, since that's up to the {other}."],
  [/^Send (First|Middle|Last)/, "The {me}'s NIC sends the message in pieces, because it doesn't fit into one packet."],
  [/^RDMA Read Request/, "The {me}'s NIC asks the {other}'s NIC for bytes from its memory, and brings the key to them."],
  [/^RDMA Read Response/, "The {me}'s NIC answers with the bytes."],
  [/^Fetch Add/, "The {me}'s NIC asks the {other}'s NIC to add to a number in its memory."],
  [/^Compare Swap/, "The {me}'s NIC asks the {other}'s NIC to replace a number in its memory, if it's the one expected."],
  [/^Atomic Acknowledge/, "The {me}'s NIC answers with the number that was there before."],
  [/^Acknowledge/, "The {me}'s NIC answers that everything has arrived so far."],
  [/^RNR NAK.*wait (.*)/, "The {me}'s NIC answers that it has no room for the message now, and that it may be sent again in {1}."],
  [/^NAK.*PSN sequence/, "The {me}'s NIC asks for the packet that it's missing."],
  [/^NAK.*  (.*)/, "The {me}'s NIC answers that it refuses the request ({1})."],
  [/^CNP/, "The {me}'s NIC asks the {other}'s to slow down."],
];

/** What the wire does to a packet, by the note that's on it. */
const DEEDS = [
  [/dropped/, "The wire loses this packet, so the {other} will never see it."],
  [/duplicated/, "The wire delivers this packet twice."],
  [/delayed (\S+ \S+)/, "The wire holds this packet up for {1}."],
  [/damaged|corrupted/, "The wire damages this packet on its way."],
  [/swapped/, "The wire swaps this packet with the next one."],
];

/** The row of a table that fits a text, with its sentence and its few words filled in. */
function found(table, text, { me, other }) {
  for (const [begins, ...rows] of table) {
    const hit = begins.exec(text);
    const fill = (row) => row?.replace(/\{(\w+)\}/g, (_, name) => ({ me, other })[name] ?? hit[name]) ?? null;
    if (hit) return rows.map(fill);
  }
  return [null, null];
}

/** What an event is, as its sentence and as a few words; either may be null, since not everything is worth a sentence. */
function told(data, event) {
  const name = (node) => data.nodes[node]?.split(" ")[0];
  const me = name(event.node);
  const sides = { me, other: isPacket(event) ? name(event.to) : me === "client" ? "server" : "client" };
  if (!isPacket(event)) return found(event.tag === "NIC" ? DECISIONS : PROGRAM, event.text, sides);
  const [onWire] = found(DEEDS, event.notes?.join(" ") ?? "", sides);
  if (onWire) return [onWire, null];
  const again = event.text.includes("sent again") ? `The ${sides.me} sends the same packet once more.` : null;
  return [again ?? found(PACKETS, `${event.tag} ${event.text}`, sides)[0], null];
}

/** For each event of a run `says`, its sentence, and `short`; `isWaiting` is a program that only waits. */
export function captions(data) {
  return data.events.map((event) => {
    const [says, short] = told(data, event);
    return { says, short, isWaiting: event.text.startsWith("ibv_poll_cq") };
  });
}
