// Lessons 1 to 7 in C: one program, for both sides.
//
//     rdma server --lesson 4
//     rdma client --lesson 4 -a SERVER
//
// Each lesson is a chain of stages for the client and one for the server: client_4 and server_4, for example. A stage
// returns 0, or else has said what went wrong. So `a(c) || b(c)` means: a, and then b, unless a has failed. What the
// stages have made, teardown destroys, however far they came.
#define _GNU_SOURCE // getopt_long(3), endian(3)
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// What the server of lesson 1 says to everyone. It travels in the ConnectReject, which has room for 148 bytes.
#define REASON "lesson 01 has nothing to offer yet: come back in lesson 02"

enum {
    BACKLOG = 8,       // how many clients may wait to be looked at, as in listen(2)
    QUEUE = 8,         // room in each queue of the QP
    CQE = 16,          // room in the CQ: all that both queues can complete
    READS = 1,         // how many READs may be under way, in each direction: with 0, lesson 5 could not READ
    ACK_TIMEOUT = 17,  // the device waits 4.096 µs × 2^17 = 0.54 s for an ACK before it sends again,
    RETRIES = 6,       // so often; also if no receive is posted there. SoftRoCE takes 7 for "for ever"
    OWN_LEN = 4096,    // the buffer that a side registers unasked, in bytes
    MAX_LEN = 1048576, // the longest that the server registers for a client
    MESSAGE_LEN = 64,  // room for a message: the metadata have 16 bytes, a DONE is a short text
    RECEIVES = 2 + 4,  // in lesson 7: two messages come, and four receives come back flushed
    ANSWER = 10000,    // how long we wait for the peer, in ms,
    RESOLVE = 2000,    // for the kernel to find the way,
    KNOCK = 600000,    // and for the next client
};

// The command line.
static struct {
    bool is_server;
    const char *address, *port, *text, *mode, *closer;
    long count, len, lesson;
} args = {
    .port = "7471",
    .text = "One side writes, and the other side's processor never knows.",
    .mode = "write",
    .closer = "client",
    .count = 1,
    .lesson = 7,
};

// A work request's number, by which its completion names it.
enum wr_id { SEND_METADATA, SEND_DONE, WRITE, READ, RECEIVE, WR_IDS = RECEIVE + RECEIVES };

// Where memory is, so that the other side can WRITE or READ there.
struct metadata {
    uint64_t addr;
    uint32_t rkey, len;
};

// A CM event, copied: the library's own is gone once it is acknowledged.
struct event {
    enum rdma_cm_event_type type;
    int status;
    struct rdma_cm_id *id;
    struct rdma_conn_param asked;
    uint8_t private_data[UINT8_MAX];
};

// One side of a connection.
struct connection {
    struct rdma_event_channel *events;    // where its CM events come
    struct event event;                   // the last of them; the server's first is the client's knock
    struct rdma_cm_id *id;                // what a socket is to TCP; id->qp is the queue pair
    bool established;                     // the server has seen the ReadyToUse
    struct ibv_pd *pd;                    // ties QP and memory together
    struct ibv_comp_channel *completions; // wakes a sleeper when something is complete
    struct ibv_cq *cq;                    // where work requests are reported complete
    struct ibv_mr *message[WR_IDS];       // the memory of each SEND and receive
    struct ibv_mr *source;                // what we have for the peer
    struct ibv_mr *destination;           // what the peer has for us comes here
    struct metadata theirs;               // where the peer's memory is
    bool done[WR_IDS];                    // is this work request complete?
    uint32_t received_len[WR_IDS];        // how many bytes came for a receive
    enum { SS_INIT, SS_MR_SENT, SS_RDMA_SENT, SS_DONE_SENT } sent; // lesson 6: how far our own messages have got,
    enum { RS_INIT, RS_MR_RECV, RS_DONE_RECV } received;           // and how far the peer's
};

// ---- What is said, above all when something went wrong.

// Most calls return -1 and set errno, others (ibv_post_*, ibv_dereg_*, ibv_destroy_*) return the errno itself: the
// man page of each tells.
static int check(const char *call, int result) {
    if (result > 0)
        errno = result;
    if (result)
        fprintf(stderr, "%s failed: errno %d (%s)\n", call, errno, strerror(errno));
    return result;
}

// ibv_alloc_*, ibv_create_*, ibv_reg_* return NULL and set errno.
static int check_made(const char *call, const void *made) {
    return check(call, made ? 0 : -1);
}

static int wrong(const char *what) {
    fprintf(stderr, "%s\n", what);
    return -1;
}

// Bytes for people: text in quotes, else hex. Zeroes at the end are room that nobody used.
static const char *preview(const void *data, size_t len) {
    static char text[4096];
    const uint8_t *bytes = data;
    size_t used = len, printable = 0;
    while (used > 0 && bytes[used - 1] == 0)
        used--;
    while (printable < used && isprint(bytes[printable]))
        printable++;
    if (printable == used)
        snprintf(text, sizeof text, "\"%.*s\"", used < 4000 ? (int)used : 4000, (const char *)bytes);
    for (size_t i = 0; printable < used && i < used && i < 24; i++)
        sprintf(text + 3 * i, i == 23 && used > 24 ? "%02x …" : "%02x ", bytes[i]);
    return text;
}

static const char *meaning(const struct event *event) {
    switch (event->type) {
    case RDMA_CM_EVENT_REJECTED: // The status is the reason's number: IBTA, volume 1, section 12.6.7.2.
        return event->status == 28  ? "consumer reject: the peer's program said no"
               : event->status == 8 ? "nobody listens on that port: start the server first, and give both the same -p"
                                    : "the peer's machine said no";
    case RDMA_CM_EVENT_ADDR_ERROR:
        return "nobody answers at that address, or no RDMA device leads there";
    case RDMA_CM_EVENT_UNREACHABLE:
        return "the peer's machine does not answer: is it up, and does a firewall drop UDP 4791?";
    case RDMA_CM_EVENT_DISCONNECTED:
        return "the other side hung up: what it says may tell why";
    default:
        return event->status < 0 ? strerror(-event->status) : "see rdma_get_cm_event(3)";
    }
}

static int other_event(const struct event *event, const char *awaited) {
    fprintf(stderr, "waited for %s, got %s with status %d (%s)\n", awaited, rdma_event_str(event->type), event->status,
            meaning(event));
    if (event->private_data[0])
        fprintf(stderr, "the peer says: %s\n", preview(event->private_data, sizeof event->private_data));
    return -1;
}

static int in_vain(int ms, const char *awaited) {
    fprintf(stderr, "waited %d s for %s, in vain: has the peer ended, or does it wait, too?\n", ms / 1000, awaited);
    return -1;
}

// poll(2): sleeps until a descriptor can be read, at most `ms`, and says which one: 0 or 1. One below 0 is left out.
static int wait_readable(int fd, int other, int ms, const char *awaited) {
    struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = other, .events = POLLIN}};
    int ready;
    do
        ready = poll(fds, 2, ms);
    while (ready < 0 && errno == EINTR);
    if (ready <= 0)
        return ready ? check("poll", ready) : in_vain(ms, awaited);
    return fds[0].revents ? 0 : 1;
}

// ---- Lesson 1: the connection manager. The client knocks; the server says no, and why.

// The channel is a descriptor. It never blocks: poll(2) waits for it, and not for ever.
static int create_event_channel(struct rdma_event_channel **channel) {
    return check_made("rdma_create_event_channel", *channel = rdma_create_event_channel()) ||
           check("fcntl", fcntl((*channel)->fd, F_SETFL, O_NONBLOCK));
}

// Takes the next event, copies it, and gives it back: rdma_ack_cm_event(3) frees it, and its private data. An event
// that is never acknowledged makes rdma_destroy_id wait for ever.
static int next_event(struct rdma_event_channel *channel, int ms, const char *awaited, struct event *copy) {
    struct rdma_cm_event *event;
    while (true) {
        if (wait_readable(channel->fd, -1, ms, awaited) < 0)
            return -1;
        if (rdma_get_cm_event(channel, &event) == 0)
            break;
        if (errno != EAGAIN)
            return check("rdma_get_cm_event", -1);
    }
    const struct rdma_conn_param *conn = &event->param.conn;
    *copy = (struct event){.type = event->event, .status = event->status, .id = event->id, .asked = *conn};
    if (conn->private_data)
        memcpy(copy->private_data, conn->private_data, conn->private_data_len);
    return check("rdma_ack_cm_event", rdma_ack_cm_event(event));
}

// Waits for the answer to a call: one of two events. TIMEWAIT_EXIT is none: the kernel has forgotten a connection.
static int wait_for_either(struct connection *c, enum rdma_cm_event_type wanted, enum rdma_cm_event_type other) {
    do
        if (next_event(c->events, ANSWER, rdma_event_str(wanted), &c->event))
            return -1;
    while (c->event.type == RDMA_CM_EVENT_TIMEWAIT_EXIT);
    return c->event.type == wanted || c->event.type == other ? 0 : other_event(&c->event, rdma_event_str(wanted));
}

static int wait_for_event(struct connection *c, enum rdma_cm_event_type wanted) {
    return wait_for_either(c, wanted, wanted);
}

static int destroy_id(struct rdma_cm_id **id) {
    int result = *id ? check("rdma_destroy_id", rdma_destroy_id(*id)) : 0;
    *id = NULL;
    return result;
}

// From what a person types to a sockaddr: rdma_getaddrinfo(3).
static int find_address(int flags, struct rdma_addrinfo **found) {
    struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP};
    int error = rdma_getaddrinfo(args.address, args.port, &hints, found);
    if (error)
        fprintf(stderr, "rdma_getaddrinfo: no address for the host \"%s\": %s\n", args.address, gai_strerror(error));
    return error;
}

// Bound to the address `::` an id serves every RDMA device of this machine. rdma_listen(3) returns at once, and sends
// nothing: a listener is an entry in a table of our own kernel.
static int listen_on(struct rdma_event_channel *listening, struct rdma_cm_id **id) {
    struct rdma_addrinfo *own;
    if (find_address(RAI_PASSIVE, &own))
        return -1;
    int result = check("rdma_create_id", rdma_create_id(listening, id, NULL, RDMA_PS_TCP)) ||
                 check("rdma_bind_addr", rdma_bind_addr(*id, own->ai_src_addr)) ||
                 check("rdma_listen", rdma_listen(*id, BACKLOG));
    rdma_freeaddrinfo(own);
    if (result == 0)
        printf("listening on %s port %s\n", args.address, args.port);
    return result;
}

// The knock brings a new id: it is the client. The listener's own stays free for the next one. Other events pass by.
static int wait_connect_request(struct rdma_event_channel *listening, struct connection *c) {
    do
        if (next_event(listening, args.count ? KNOCK : -1, "a client's connect request", &c->event))
            return -1;
    while (c->event.type != RDMA_CM_EVENT_CONNECT_REQUEST);
    c->id = c->event.id;
    return 0;
}

static const char *peer_name(struct connection *c) {
    static char host[NI_MAXHOST];
    struct sockaddr *peer = rdma_get_peer_addr(c->id);
    int error = getnameinfo(peer, sizeof(struct sockaddr_storage), host, sizeof host, NULL, 0, NI_NUMERICHOST);
    return error ? "an unknown address" : host;
}

// Sends the ConnectReject, with words of our own as its private data: rdma_reject(3).
static int reject(struct connection *c, const char *why) {
    return check("rdma_reject", rdma_reject(c->id, why, strlen(why)));
}

// In the ConnectRequest: Local ACK Timeout. Left to themselves, older kernels wait longer than we do.
static int set_ack_timeout(struct connection *c) {
    uint8_t exponent = ACK_TIMEOUT;
    int option = RDMA_OPTION_ID_ACK_TIMEOUT;
    return check("rdma_set_option", rdma_set_option(c->id, RDMA_OPTION_ID, option, &exponent, sizeof exponent));
}

// Each call only starts the work; the event that follows brings the answer. The routing table says which of our
// devices leads there, and ARP, which is not RDMA, finds the server's Ethernet address. Which path? InfiniBand would
// ask. On Ethernet there is only one, so nothing is sent.
static int resolve(struct connection *c) {
    struct rdma_addrinfo *server;
    if (find_address(0, &server))
        return -1;
    int result = check("rdma_create_id", rdma_create_id(c->events, &c->id, NULL, RDMA_PS_TCP)) ||
                 check("rdma_resolve_addr", rdma_resolve_addr(c->id, NULL, server->ai_dst_addr, RESOLVE)) ||
                 wait_for_event(c, RDMA_CM_EVENT_ADDR_RESOLVED) || (args.lesson > 1 && set_ack_timeout(c)) ||
                 check("rdma_resolve_route", rdma_resolve_route(c->id, RESOLVE)) ||
                 wait_for_event(c, RDMA_CM_EVENT_ROUTE_RESOLVED);
    rdma_freeaddrinfo(server);
    return result;
}

// Sends the ConnectRequest. It offers no resources and brings no private data: we only want to hear the answer.
static int knock(struct connection *c) {
    struct rdma_conn_param nothing = {0};
    return check("rdma_connect", rdma_connect(c->id, &nothing));
}

// The private data of a REJECTED event are the server's own words, if it was the server's program that said no.
static int read_reason(struct connection *c) {
    if (wait_for_event(c, RDMA_CM_EVENT_REJECTED))
        return -1;
    if (c->event.status != 28)
        return other_event(&c->event, "the server's own no");
    printf("rejected with status %d (%s)\n", c->event.status, meaning(&c->event));
    printf("the server says: %s\n", preview(c->event.private_data, sizeof c->event.private_data));
    return 0;
}

static int client_1(struct connection *c) {
    return resolve(c) || knock(c) || read_reason(c);
}

static int server_1(struct connection *c) {
    printf("%s knocked\n", peer_name(c));
    return reject(c, REASON);
}

// ---- Lesson 2: a connection. Both sides create their resources, the queue pairs become connected, both hang up.

// A client's events get a channel of their own: the next client's knock waits at the listener's, and comes not
// between them. rdma_migrate_id(3)
static int migrate(struct connection *c) {
    return create_event_channel(&c->events) || check("rdma_migrate_id", rdma_migrate_id(c->id, c->events));
}

// All of them live on the device that the id is bound to. rdma_create_qp(3) gives the id a QP in the state INIT:
// receives may be posted, nothing can be sent.
static int create_resources(struct connection *c) {
    struct ibv_context *device = c->id->verbs;
    if (check_made("ibv_alloc_pd", c->pd = ibv_alloc_pd(device)) ||
        check_made("ibv_create_comp_channel", c->completions = ibv_create_comp_channel(device)) ||
        check("fcntl", fcntl(c->completions->fd, F_SETFL, O_NONBLOCK)) ||
        check_made("ibv_create_cq", c->cq = ibv_create_cq(device, CQE, NULL, c->completions, 0)))
        return -1;
    struct ibv_qp_init_attr init = {
        .send_cq = c->cq,
        .recv_cq = c->cq,
        .cap = {.max_send_wr = QUEUE, .max_recv_wr = QUEUE, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    return check("rdma_create_qp", rdma_create_qp(c->id, c->pd, &init));
}

// What we ask for, or accept at most: rdma_connect(3).
static const struct rdma_conn_param CONN_PARAM = {
    .responder_resources = READS,
    .initiator_depth = READS,
    .retry_count = RETRIES,
    .rnr_retry_count = RETRIES,
};

// Sends the ConnectRequest, with our QP's number. The ConnectReply, with the server's, is taken inside
// rdma_get_cm_event: it moves our QP to RTR and RTS, sends the ReadyToUse, and returns ESTABLISHED.
static int connect_to_server(struct connection *c, const char *private_data) {
    struct rdma_conn_param param = CONN_PARAM;
    param.private_data = private_data;
    param.private_data_len = strlen(private_data);
    if (check("rdma_connect", rdma_connect(c->id, &param)) || wait_for_event(c, RDMA_CM_EVENT_ESTABLISHED))
        return -1;
    printf("connected\n");
    return 0;
}

// rdma_accept(3) moves our QP to RTR and RTS, and sends the ConnectReply. The client's ReadyToUse makes it
// ESTABLISHED. If that packet is lost, a client that wants nothing more from us may hang up before it is sent again.
static int accept_client(struct connection *c) {
    struct rdma_conn_param param = CONN_PARAM, *asked = &c->event.asked;
    // Nobody else compares the two sides' numbers, and a server must not count on more than the client can do.
    if (param.responder_resources > asked->responder_resources)
        param.responder_resources = asked->responder_resources;
    if (param.initiator_depth > asked->initiator_depth)
        param.initiator_depth = asked->initiator_depth;
    if (set_ack_timeout(c) || check("rdma_accept", rdma_accept(c->id, &param)) ||
        wait_for_either(c, RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_DISCONNECTED))
        return -1;
    c->established = c->event.type == RDMA_CM_EVENT_ESTABLISHED;
    printf("a connection from %s is accepted\n", peer_name(c));
    return 0;
}

// rdma_disconnect(3) moves our QP to ERR and sends the DisconnectRequest. The event is the server's answer.
static int disconnect(struct connection *c) {
    return check("rdma_disconnect", rdma_disconnect(c->id)) || wait_for_event(c, RDMA_CM_EVENT_DISCONNECTED);
}

// The client goes first. Our own rdma_disconnect answers: without the DisconnectReply it would wait for its time-out.
static int wait_disconnect(struct connection *c) {
    if (c->established && wait_for_event(c, RDMA_CM_EVENT_DISCONNECTED))
        return -1;
    printf("the client has disconnected\n");
    return check("rdma_disconnect", rdma_disconnect(c->id));
}

// Takes memory back from the device, and frees it: ibv_dereg_mr(3).
static int deregister(struct ibv_mr *mr) {
    void *bytes = mr ? mr->addr : NULL;
    if (mr && check("ibv_dereg_mr", ibv_dereg_mr(mr)))
        return -1; // The device may still use it.
    free(bytes);
    return 0;
}

// Destroys in the one right order: what uses something goes before what it uses.
static int teardown(struct connection *c) {
    int result = 0;
    if (c->id && c->id->qp)
        rdma_destroy_qp(c->id);
    for (int wr_id = 0; wr_id < WR_IDS; wr_id++)
        result |= deregister(c->message[wr_id]);
    result |= deregister(c->source);
    result |= deregister(c->destination);
    if (c->cq)
        result |= check("ibv_destroy_cq", ibv_destroy_cq(c->cq));
    if (c->completions)
        result |= check("ibv_destroy_comp_channel", ibv_destroy_comp_channel(c->completions));
    if (c->pd)
        result |= check("ibv_dealloc_pd", ibv_dealloc_pd(c->pd));
    result |= destroy_id(&c->id);
    if (c->events)
        rdma_destroy_event_channel(c->events);
    return result;
}

static int client_2(struct connection *c) {
    return resolve(c) || create_resources(c) || connect_to_server(c, "") || disconnect(c);
}

static int server_2(struct connection *c) {
    return migrate(c) || create_resources(c) || accept_client(c) || wait_disconnect(c);
}

// ---- Lesson 3: telling the other side where memory is. {addr, rkey, len} travel by SEND and RECV.

// Zeroed memory that the device may use as `access` says: ibv_reg_mr(3). The kernel pins whole pages.
static int register_memory(struct connection *c, size_t len, int access, struct ibv_mr **mr) {
    void *bytes = aligned_alloc(4096, (len + 4095) / 4096 * 4096);
    if (check_made("aligned_alloc", bytes))
        return -1;
    *mr = ibv_reg_mr(c->pd, memset(bytes, 0, len), len, access);
    if (!*mr)
        free(bytes);
    return check_made("ibv_reg_mr", *mr);
}

// What we have for the peer. REMOTE_READ, so that the rkey that is sent for it is one: the other side could READ
// here. In lesson 3 nothing is written yet: all that the server wants to know is the length.
static int register_source(struct connection *c) {
    size_t len = args.lesson == 3 ? OWN_LEN : args.len ? (size_t)args.len : strlen(args.text);
    if (register_memory(c, len, IBV_ACCESS_REMOTE_READ, &c->source))
        return -1;
    if (args.lesson == 3)
        return 0;
    uint8_t *bytes = c->source->addr;
    for (size_t i = 0; i < len; i++) // 251 is prime: a piece in a wrong place never looks right.
        bytes[i] = args.len ? i % 251 : (uint8_t)args.text[i];
    printf("to be written: %s (%zu bytes)\n", preview(bytes, len), len);
    return 0;
}

// Memory that the other side may WRITE and READ without our doing. REMOTE_WRITE needs LOCAL_WRITE too: in the end it
// is our device that writes.
static int register_buffer(struct connection *c, size_t len) {
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    return register_memory(c, len, access, &c->destination);
}

// Lends the device room for a message: ibv_post_recv(3). This comes before connect and accept: a SEND that finds no
// receive posted is turned away with an RNR NAK ("receiver not ready"). It is our own device that writes here.
static int post_receive(struct connection *c, int wr_id) {
    if (register_memory(c, MESSAGE_LEN, IBV_ACCESS_LOCAL_WRITE, &c->message[wr_id]))
        return -1;
    struct ibv_mr *mr = c->message[wr_id];
    struct ibv_sge sge = {.addr = (uintptr_t)mr->addr, .length = MESSAGE_LEN, .lkey = mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
    return check("ibv_post_recv", ibv_post_recv(c->id->qp, &wr, &bad));
}

// Hands a request to the device, and returns before anything is sent: ibv_post_send(3). Until its completion the
// device uses that memory. A SEND does not look at where the peer's is.
static int post_send(struct connection *c, enum wr_id wr_id, enum ibv_wr_opcode opcode, struct ibv_mr *mr, size_t len) {
    struct ibv_sge sge = {.addr = (uintptr_t)mr->addr, .length = len, .lkey = mr->lkey};
    struct ibv_send_wr *bad, wr = {
        .wr_id = wr_id,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = opcode,
        .send_flags = IBV_SEND_SIGNALED, // it yields a completion
        .wr.rdma = {.remote_addr = c->theirs.addr, .rkey = c->theirs.rkey},
    };
    return check("ibv_post_send", ibv_post_send(c->id->qp, &wr, &bad));
}

// No access flag: our device only reads here.
static int post_message(struct connection *c, enum wr_id wr_id, const void *bytes, size_t len) {
    if (register_memory(c, len, 0, &c->message[wr_id]))
        return -1;
    memcpy(c->message[wr_id]->addr, bytes, len);
    return post_send(c, wr_id, IBV_WR_SEND, c->message[wr_id], len);
}

// SENDs where a region is: 16 bytes, big-endian, the layout that rping uses. No region: no bytes, which is a refusal.
static int post_metadata(struct connection *c, const struct ibv_mr *mr) {
    struct metadata ours = {0};
    if (mr)
        ours = (struct metadata){(uintptr_t)mr->addr, mr->rkey, mr->length};
    printf("our metadata: addr=0x%" PRIx64 " rkey=0x%x len=%u\n", ours.addr, ours.rkey, ours.len);
    struct metadata wire = {htobe64(ours.addr), htobe32(ours.rkey), htobe32(ours.len)};
    return post_message(c, SEND_METADATA, &wire, sizeof wire);
}

// Fewer bytes may have come than there is room for.
static int read_metadata(struct connection *c) {
    struct metadata wire;
    if (c->received_len[RECEIVE] < sizeof wire)
        return wrong("the peer's message is too short for metadata: do both sides run the same lesson?");
    memcpy(&wire, c->message[RECEIVE]->addr, sizeof wire);
    c->theirs = (struct metadata){be64toh(wire.addr), be32toh(wire.rkey), be32toh(wire.len)};
    printf("the peer's metadata: addr=0x%" PRIx64 " rkey=0x%x len=%u\n", c->theirs.addr, c->theirs.rkey, c->theirs.len);
    return 0;
}

static const char *request(uint64_t wr_id) {
    static const char *const names[] = {"the SEND of metadata", "the SEND of DONE", "the RDMA WRITE", "the RDMA READ"};
    return wr_id < RECEIVE ? names[wr_id] : "the RECV";
}

static int completion_failed(const struct ibv_wc *wc) {
    fprintf(stderr, "%s completed with status %d (%s), vendor_err 0x%x: see ibv_poll_cq(3)\n", request(wc->wr_id),
            wc->status, ibv_wc_status_str(wc->status), wc->vendor_err);
    return -1;
}

// How a look into the CQ ended. A CM event is left where it is, to be taken.
enum woken { FAILED = -1, NOTHING, COMPLETION, CM_EVENT };

// Takes one completion, and notes it: ibv_poll_cq(3). If its status is an error, opcode and byte_len are undefined.
static enum woken take_completion(struct connection *c, struct ibv_wc *wc) {
    int count = ibv_poll_cq(c->cq, 1, wc);
    if (count < 0)
        return wrong("ibv_poll_cq failed: the CQ is broken"); // It gives no errno.
    if (count == 0)
        return NOTHING;
    c->done[wc->wr_id] = true;
    c->received_len[wc->wr_id] = wc->status == IBV_WC_SUCCESS ? wc->byte_len : 0;
    return COMPLETION;
}

// Polls until there is a completion. Between two polls it looks, for 1 ms, whether the peer hangs up. The goodbye
// comes on another way than the data, and may have overtaken it: so one more poll follows.
static enum woken poll_for_completion(struct connection *c, const char *awaited, struct ibv_wc *wc) {
    struct pollfd events = {.fd = c->events->fd, .events = POLLIN};
    bool has_event = false;
    for (int ms = 0; ms < ANSWER; ms++) {
        enum woken woken = take_completion(c, wc);
        if (woken != NOTHING || has_event)
            return woken != NOTHING ? woken : CM_EVENT;
        has_event = poll(&events, 1, 1) > 0;
    }
    return in_vain(ANSWER, awaited);
}

static enum woken sleep_for_completion(struct connection *c, int events, const char *awaited, struct ibv_wc *wc);

// Waits until a work request is complete. A SEND is when its ACK has come: the other side's device has it, and the
// memory is ours again.
static enum woken wait_until(struct connection *c, enum wr_id wr_id) {
    while (!c->done[wr_id]) {
        struct ibv_wc wc;
        enum woken woken = args.lesson < 5 ? poll_for_completion(c, request(wr_id), &wc)
                                           : sleep_for_completion(c, c->events->fd, request(wr_id), &wc);
        if (woken != COMPLETION)
            return woken;
        if (wc.status != IBV_WC_SUCCESS)
            return completion_failed(&wc);
    }
    return COMPLETION;
}

// The same, and a peer that hangs up first is an error.
static int wait_for(struct connection *c, enum wr_id wr_id) {
    enum woken woken = wait_until(c, wr_id);
    if (woken == CM_EVENT && next_event(c->events, ANSWER, "a CM event", &c->event) == 0)
        return other_event(&c->event, request(wr_id));
    return woken == COMPLETION ? 0 : -1;
}

// The peer has our message when its ACK comes. If it hangs up instead, it wants nothing more of us. Whether it has
// the message, only the peer knows: a device that has hung up sends no ACK.
static int send_metadata(struct connection *c, const struct ibv_mr *mr) {
    return post_metadata(c, mr) || wait_until(c, SEND_METADATA) == FAILED;
}

static int receive_metadata(struct connection *c) {
    return wait_for(c, RECEIVE) || read_metadata(c);
}

// The other side may have less room than we need, or, if it refused, none.
static int check_room(struct connection *c) {
    return c->source->length > c->theirs.len ? wrong("our bytes do not fit into the other side's: write less") : 0;
}

// A buffer as long as the client's. One longer than we give is refused.
static int register_wanted(struct connection *c) {
    if (c->theirs.len >= 1 && c->theirs.len <= MAX_LEN)
        return register_buffer(c, c->theirs.len);
    send_metadata(c, NULL);
    return wrong("the client asked for a buffer of another length than 1 byte to 1 MiB");
}

// The client SENDs how much memory it wants, and the server answers with where it is.
static int ask(struct connection *c) {
    return post_receive(c, RECEIVE) || connect_to_server(c, "") || send_metadata(c, c->source) || receive_metadata(c);
}

static int answer(struct connection *c) {
    return post_receive(c, RECEIVE) || accept_client(c) || receive_metadata(c) || register_wanted(c) ||
           send_metadata(c, c->destination);
}

static int client_3(struct connection *c) {
    return resolve(c) || create_resources(c) || register_source(c) || ask(c) || check_room(c) || disconnect(c);
}

static int server_3(struct connection *c) {
    return migrate(c) || create_resources(c) || answer(c) || wait_disconnect(c);
}

// ---- Lesson 4: RDMA WRITE. The client puts bytes into the server's memory; the server's program is not told.

// One-sided: the request carries the other side's address and rkey, and its device does the rest.
static int post_write(struct connection *c) {
    return post_send(c, WRITE, IBV_WR_RDMA_WRITE, c->source, c->source->length);
}

// The completion means that the other side's device has the bytes; that its program knows, it does not mean.
static int write_to_peer(struct connection *c) {
    return post_write(c) || wait_for(c, WRITE);
}

// Called when the other side has said that it's done: nothing else tells us that its WRITE has arrived.
static int show_memory(struct connection *c) {
    struct ibv_mr *mr = c->destination;
    printf("the memory holds %zu bytes: %s\n", mr->length, preview(mr->addr, mr->length));
    return 0;
}

static int client_4(struct connection *c) {
    return resolve(c) || create_resources(c) || register_source(c) || ask(c) || check_room(c) || write_to_peer(c) ||
           disconnect(c);
}

static int server_4(struct connection *c) {
    return server_3(c) || show_memory(c);
}

// ---- Lesson 5: RDMA READ. The client fetches the bytes back, and compares. From here on both sides sleep.

// Sleeps until there is a completion, or a CM event at the descriptor `events`. Arm, poll, and only then sleep: a
// completion that comes after the poll finds the CQ armed and wakes us; one that came before is found by the poll. In
// the other order it could fall between the two, and we would sleep for ever: ibv_get_cq_event(3).
static enum woken sleep_for_completion(struct connection *c, int events, const char *awaited, struct ibv_wc *wc) {
    int ready = 0;
    while (true) {
        if (check("ibv_req_notify_cq", ibv_req_notify_cq(c->cq, 0)))
            return FAILED;
        enum woken woken = take_completion(c, wc);
        if (woken != NOTHING || ready == 1)
            return woken != NOTHING ? woken : CM_EVENT;
        ready = wait_readable(c->completions->fd, events, ANSWER, awaited);
        if (ready < 0)
            return FAILED;
        struct ibv_cq *cq;
        void *context;
        // An event that is never acknowledged makes ibv_destroy_cq wait for ever.
        if (ready == 0 && ibv_get_cq_event(c->completions, &cq, &context) == 0)
            ibv_ack_cq_events(cq, 1);
    }
}

// One-sided too: the other side's device answers, and our own writes the bytes into the destination.
static int post_read(struct connection *c) {
    size_t len = c->destination->length < c->theirs.len ? c->destination->length : c->theirs.len;
    return post_send(c, READ, IBV_WR_RDMA_READ, c->destination, len);
}

// Nobody but our own device writes into this destination: LOCAL_WRITE is enough.
static int read_back(struct connection *c) {
    return register_memory(c, c->source->length, IBV_ACCESS_LOCAL_WRITE, &c->destination) || post_read(c) ||
           wait_for(c, READ);
}

// What came back must be what went out.
static int compare(struct connection *c) {
    struct ibv_mr *mr = c->destination;
    printf("read back: %s\n", preview(mr->addr, mr->length));
    if (memcmp(c->source->addr, mr->addr, mr->length))
        return wrong("source and destination buffers differ");
    printf("SUCCESS, source and destination buffers match\n");
    return 0;
}

static int client_5(struct connection *c) {
    return resolve(c) || create_resources(c) || register_source(c) || ask(c) || check_room(c) || write_to_peer(c) ||
           read_back(c) || compare(c) || disconnect(c);
}

static int server_5(struct connection *c) {
    return server_4(c);
}

// ---- Lesson 6: both sides do everything, driven by completions, as a state machine.
//
//     what we sent:      SS_INIT ──▶ SS_MR_SENT ──▶ SS_RDMA_SENT ──▶ SS_DONE_SENT
//     what we received:  RS_INIT ──▶ RS_MR_RECV ──▶ RS_DONE_RECV
//
// Each arrow is one completion. The WRITE or READ starts when our MR message is sent *and* the peer's has come; the
// exchange is over when our DONE is sent *and* the peer's has come. Completions come in any order otherwise.

static bool writes(void) {
    return strcmp(args.mode, "write") == 0;
}

static int register_buffers(struct connection *c) {
    return register_source(c) || register_buffer(c, OWN_LEN);
}

static int post_receives(struct connection *c, int count) {
    int result = 0;
    for (int wr_id = RECEIVE; wr_id < RECEIVE + count && result == 0; wr_id++)
        result = post_receive(c, wr_id);
    return result;
}

// The peer WRITEs into our destination, or READs from our source.
static int post_mr(struct connection *c) {
    return post_metadata(c, writes() ? c->destination : c->source);
}

static int post_rdma(struct connection *c) {
    return writes() ? check_room(c) || post_write(c) : post_read(c);
}

// A text for the other side's user.
static int post_done(struct connection *c) {
    char text[MESSAGE_LEN];
    const char *side = args.is_server ? "passive/server" : "active/client";
    int len = snprintf(text, sizeof text, "message from %s side with pid %07d", side, getpid());
    return post_message(c, SEND_DONE, text, len);
}

static bool knows_both(const struct connection *c) {
    return c->sent >= SS_MR_SENT && c->received >= RS_MR_RECV;
}

// The next state, and what is to be done there. Messages arrive in order, and each takes the oldest receive: so the
// first is the peer's MR, the second its DONE.
static int next_state(struct connection *c, uint64_t wr_id) {
    bool knew_both = knows_both(c);
    int result = 0;
    switch (wr_id) {
    case SEND_METADATA:
        c->sent = SS_MR_SENT;
        break;
    case WRITE:
    case READ:
        c->sent = SS_RDMA_SENT;
        result = post_done(c);
        break;
    case SEND_DONE:
        c->sent = SS_DONE_SENT;
        break;
    case RECEIVE: // The client has sent its own MR at once; the server answers.
        c->received = RS_MR_RECV;
        result = read_metadata(c) || (args.is_server && post_mr(c));
        break;
    case RECEIVE + 1:
        c->received = RS_DONE_RECV;
        printf("received message: %s\n", preview(c->message[wr_id]->addr, c->received_len[wr_id]));
        break;
    default:
        result = wrong("a third message came: do both sides run the same lesson?");
    }
    // Now the peer knows our memory and we know the peer's. Whichever came second starts the operation.
    return result || (!knew_both && knows_both(c) && post_rdma(c));
}

static int exchange(struct connection *c) {
    if (!args.is_server && post_mr(c))
        return -1;
    while (c->sent != SS_DONE_SENT || c->received != RS_DONE_RECV) {
        struct ibv_wc wc;
        enum woken woken = sleep_for_completion(c, c->events->fd, "the next completion of the exchange", &wc);
        // The peer hangs up when it has our DONE. If its own is here, too, nothing but the ACK was lost.
        if (woken == CM_EVENT && c->sent == SS_RDMA_SENT && c->received == RS_DONE_RECV)
            return 0;
        if (woken != COMPLETION)
            return woken == FAILED ? -1 : wrong("the connection ended before the exchange: the other side may say why");
        // Flushed: an echo of what comes, or has come, with another status, or as a goodbye.
        if (wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_WR_FLUSH_ERR)
            return completion_failed(&wc);
        if (wc.status == IBV_WC_SUCCESS && next_state(c, wc.wr_id))
            return -1;
    }
    return 0;
}

static int client_6(struct connection *c) {
    return resolve(c) || create_resources(c) || register_buffers(c) || post_receives(c, 2) ||
           connect_to_server(c, "") || exchange(c) || show_memory(c) || disconnect(c);
}

static int server_6(struct connection *c) {
    return migrate(c) || create_resources(c) || register_buffers(c) || post_receives(c, 2) || accept_client(c) ||
           exchange(c) || show_memory(c) || wait_disconnect(c);
}

// ---- Lesson 7: the end. We post four receives too many, either side hangs up, and they come back flushed.

// What both sides must agree on, in the private data of the ConnectRequest.
static const char *terms(void) {
    static char text[32];
    snprintf(text, sizeof text, "%s %s", args.mode, args.closer);
    return text;
}

// Two programs with different terms would wait for each other: better to say no now, and why.
static int check_terms(struct connection *c) {
    const char *why = "client and server differ in -m or --closer";
    if (memcmp(c->event.private_data, terms(), strlen(terms())) == 0)
        return 0;
    reject(c, why);
    return wrong(why);
}

// Waits until each receive is accounted for. If the goodbye caught a SEND under way, that may come back here as well. A
// flush says nothing about the cause, which is the first completion with another status, if there is one.
static int drain(struct connection *c) {
    int flushed = 0, result = 0;
    for (int wr_id = RECEIVE; wr_id < RECEIVE + RECEIVES; wr_id++) {
        while (!c->done[wr_id]) {
            struct ibv_wc wc;
            if (sleep_for_completion(c, -1, "the receives that the disconnect flushes", &wc) != COMPLETION)
                return -1;
            if (wc.status == IBV_WC_WR_FLUSH_ERR)
                flushed += wc.wr_id >= RECEIVE;
            else if (wc.status != IBV_WC_SUCCESS && result == 0)
                result = completion_failed(&wc);
        }
    }
    printf("%d receives came back flushed\n", flushed);
    return result;
}

// Whoever goes first sends the DisconnectRequest, and the other side waits for it and answers.
static int close_connection(struct connection *c, bool goes_first) {
    return (!goes_first && wait_for_event(c, RDMA_CM_EVENT_DISCONNECTED)) ||
           check("rdma_disconnect", rdma_disconnect(c->id)) || drain(c) ||
           (goes_first && wait_for_event(c, RDMA_CM_EVENT_DISCONNECTED));
}

// However it went, we close in good order. After a failure we don't wait for the other's goodbye, which may never come.
static int exchange_and_close(struct connection *c) {
    if (args.is_server && !c->established)
        return wrong("the client hung up before anything was exchanged: it may say why");
    bool is_closer = strcmp(args.closer, args.is_server ? "server" : "client") == 0;
    int outcome = exchange(c);
    return close_connection(c, is_closer || outcome) || outcome;
}

static int client_7(struct connection *c) {
    return resolve(c) || create_resources(c) || register_buffers(c) || post_receives(c, RECEIVES) ||
           connect_to_server(c, terms()) || exchange_and_close(c) || show_memory(c);
}

static int server_7(struct connection *c) {
    return migrate(c) || check_terms(c) || create_resources(c) || register_buffers(c) || post_receives(c, RECEIVES) ||
           accept_client(c) || exchange_and_close(c) || show_memory(c);
}

// ---- Both sides from beginning to end.

typedef int part(struct connection *c);
static part *const CLIENTS[] = {client_1, client_2, client_3, client_4, client_5, client_6, client_7};
static part *const SERVERS[] = {server_1, server_2, server_3, server_4, server_5, server_6, server_7};

static int run_client(void) {
    struct connection c = {0};
    int result = create_event_channel(&c.events) || CLIENTS[args.lesson - 1](&c);
    result |= teardown(&c);
    if (result == 0)
        printf("client clean-up is complete\n");
    return result;
}

// A failure is one client's: what it had is destroyed, and the next one is served.
static int run_server(void) {
    struct rdma_event_channel *listening = NULL;
    struct rdma_cm_id *listener = NULL;
    long served = 0, failures = 0;
    int result = create_event_channel(&listening) || listen_on(listening, &listener);
    while (result == 0 && (args.count == 0 || served < args.count)) {
        struct connection c = {0};
        result = wait_connect_request(listening, &c);
        if (result)
            break;
        int outcome = SERVERS[args.lesson - 1](&c);
        outcome |= teardown(&c);
        failures += outcome != 0;
        served++;
    }
    result |= destroy_id(&listener);
    if (listening)
        rdma_destroy_event_channel(listening);
    if (failures)
        fprintf(stderr, "%ld of %ld clients could not be served\n", failures, served);
    if (result == 0)
        printf("server shut-down is complete\n");
    return result || failures;
}

static const char USAGE[] =
    "usage: rdma server [-a ADDR] [OPTIONS]\n"
    "       rdma client -a ADDR [OPTIONS]\n"
    "  -a, --address ADDR  the server's address or host name [server: ::, which is all, IPv4 too]\n"
    "  -p, --port PORT     the connection manager's port [7471]\n"
    "  -n, --count COUNT   the server: clients to serve, one after the other; 0: no end [1]\n"
    "      --lesson N      what lesson N does, 1 to 7 [7]\n"
    "  -s, --text TEXT     what is written: from lesson 4 on by the client, from 6 on by both\n"
    "      --len N         the same, but N bytes of a pattern\n"
    "  -m, --mode MODE     write or read, the same on both sides, from lesson 6 on [write]\n"
    "      --closer SIDE   client or server: who hangs up first, the same on both sides, in lesson 7 [client]\n";

// A whole number from `least` to `most`, or -1.
static long number(const char *text, long least, long most) {
    char *end;
    long value = strtol(text, &end, 10);
    return *text == '\0' || *end || value < least || value > most ? -1 : value;
}

static bool is_one_of(const char *word, const char *one, const char *other) {
    return strcmp(word, one) == 0 || strcmp(word, other) == 0;
}

// Reads the command line: what is wrong with it, or NULL.
static const char *parse(int argc, char **argv) {
    static const struct option options[] = {
        {"address", 1, 0, 'a'}, {"port", 1, 0, 'p'}, {"count", 1, 0, 'n'}, {"lesson", 1, 0, 'L'}, {"text", 1, 0, 's'},
        {"len", 1, 0, 'l'},     {"mode", 1, 0, 'm'}, {"closer", 1, 0, 'c'}, {"help", 0, 0, 'h'},  {0},
    };
    bool has[256] = {0};
    for (int option; (option = getopt_long(argc, argv, "a:p:n:s:m:h", options, NULL)) != -1; has[option] = true) {
        switch (option) {
        case 'a': args.address = optarg; break;
        case 'p': args.port = optarg; break;
        case 'n': args.count = number(optarg, 0, INT32_MAX); break;
        case 'L': args.lesson = number(optarg, 1, 7); break;
        case 's': args.text = optarg; break;
        case 'l': args.len = number(optarg, 1, INT32_MAX); break;
        case 'm': args.mode = optarg; break;
        case 'c': args.closer = optarg; break;
        case 'h': printf("%s", USAGE); exit(0);
        default: return "the options are these";
        }
    }
    if (optind != argc - 1 || !is_one_of(argv[optind], "server", "client"))
        return "one word is given, server or client, and options";
    args.is_server = strcmp(argv[optind], "server") == 0;
    if (args.is_server && !args.address)
        args.address = "::";
    if (!args.address)
        return "the client needs the server's address: -a";
    if (number(args.port, 1, UINT16_MAX) < 0)
        return "a port is a number from 1 to 65535";
    if (args.lesson < 0)
        return "a lesson is a number from 1 to 7";
    if (args.count < 0 || (has['n'] && !args.is_server))
        return "-n is a number, and the server's";
    if (args.len < 0 || !*args.text || (has['s'] && has['l']))
        return "what is written is either a text or a length, and not empty";
    if ((has['s'] || has['l']) && args.lesson < (args.is_server ? 6 : 4))
        return "this side of this lesson writes nothing";
    if (!is_one_of(args.mode, "write", "read") || (has['m'] && args.lesson < 6))
        return "-m is write or read, from lesson 6 on";
    if (!is_one_of(args.closer, "client", "server") || (has['c'] && args.lesson < 7))
        return "--closer is client or server, in lesson 7";
    return NULL;
}

// Exit status: 0 done, 1 failed, 2 wrong usage.
int main(int argc, char **argv) {
    // A line at a time, also into a pipe: so they stand in the order in which things happen.
    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stderr, NULL, _IOLBF, 0);
    const char *problem = parse(argc, argv);
    if (problem) {
        fprintf(stderr, "%s\n%s", problem, USAGE);
        return 2;
    }
    return (args.is_server ? run_server() : run_client()) ? 1 : 0;
}
