// Lesson 11 in C: one program, for both sides. Datagrams, and what makes them safe: numbers, a time-out, asking again,
// carrying out once. One client is served; the lesson's own server serves many with one queue pair.
//
//     datagrams server                          datagrams client -a SERVER --requests 2
//
// A stage returns 0, or else has said what went wrong. So `a(s) || b(s)` means: a, and then b, unless a has failed.
// What the stages have made, teardown destroys, however far they came.
#define _GNU_SOURCE // getopt_long(3), endian(3)
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MAGIC = 0x44473131, // "DG11", with which each message begins
    COINS = 10,         // what a client puts into its box each time
    GOODBYE = 0,        // the word of its last request
    FRONT = 40,         // bytes in front of each datagram in its receive: a GRH, or what takes its place
    RECEIVES = 4,       // so many are posted
    PORT = 1,           // the device's; SoftRoCE has one
    TRIES = 12,         // how often the client asks,
    TIMEOUT = 500,      // and how long it waits for an answer before it asks again, in ms
    LINGER = 2000,      // so long the server stays after the goodbye: the client may ask again, if the answer is lost
    ANSWER = 10000,     // how long we wait for what has to come, in ms,
    RESOLVE = 2000,     // for the kernel to find the way,
    KNOCK = 600000,     // and for a client
};

// A request, or its answer, which has the same number. On the wire the numbers are big-endian.
struct message {
    uint32_t magic, client, number, word;
};

// A receive: the message stands behind what the device puts in front of it.
struct part {
    uint8_t front[FRONT];
    struct message message;
};

// The command line.
static struct {
    bool is_server;
    const char *address, *port;
    long requests;
} args = {.port = "7471", .requests = 2};

// One side, and all that belongs to it.
struct side {
    struct rdma_event_channel *events;    // where its CM events come
    struct rdma_cm_id *id;                // id->qp is the queue pair
    struct ibv_pd *pd;                    // ties QP, memory and address handle together
    struct ibv_comp_channel *completions; // wakes a sleeper when something is complete
    struct ibv_cq *cq;                    // where requests are reported complete
    struct part parts[RECEIVES];          // room for what comes; a receive's wr_id is its part's number
    struct ibv_mr *mr;                    // the same as the device knows it
    struct ibv_ah *ah;                    // where our datagrams go: the way to the machine,
    uint32_t qp_num, qkey;                // the queue pair there, and its key
    uint32_t client;                      // the client's number, which the server gives
    uint32_t last, coins;                 // the server: the last request that it carried out, and the answer
};

// ---- What is said when something went wrong.

// Most calls return -1 and set errno, others (ibv_post_*, ibv_dereg_*, ibv_destroy_*) return the errno itself.
static int check(const char *call, int result) {
    if (result > 0)
        errno = result;
    if (result)
        fprintf(stderr, "%s failed: errno %d (%s)\n", call, errno, strerror(errno));
    return result;
}

static int check_made(const char *call, const void *made) {
    return check(call, made ? 0 : -1);
}

static int wrong(const char *what) {
    fprintf(stderr, "%s\n", what);
    return -1;
}

// ---- Ask for a service: the client gets a queue pair's number and its Q_Key, and no connection.

// Waits for an event, and takes it. It is the caller's to acknowledge: what it carries is gone then.
static int wait_for_event(struct rdma_event_channel *channel, enum rdma_cm_event_type wanted, int ms,
                          struct rdma_cm_event **event) {
    struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
    if (poll(&fd, 1, ms) != 1)
        return wrong("waited for an event of the connection manager, in vain");
    if (check("rdma_get_cm_event", rdma_get_cm_event(channel, event)))
        return -1;
    if ((*event)->event == wanted)
        return 0;
    fprintf(stderr, "waited for %s, got %s with status %d\n", rdma_event_str(wanted), rdma_event_str((*event)->event),
            (*event)->status);
    rdma_ack_cm_event(*event);
    return -1;
}

static int wait_and_ack(struct side *s, enum rdma_cm_event_type wanted) {
    struct rdma_cm_event *event;
    return wait_for_event(s->events, wanted, ANSWER, &event) || check("rdma_ack_cm_event", rdma_ack_cm_event(event));
}

// RDMA_PS_UDP: a space of ports of its own. A service of lesson 01 on the same port is another one.
static int find_address(int flags, struct rdma_addrinfo **found) {
    struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_UDP};
    int error = rdma_getaddrinfo(args.address, args.port, &hints, found);
    if (error)
        fprintf(stderr, "rdma_getaddrinfo: no address for the host \"%s\": %s\n", args.address, gai_strerror(error));
    return error;
}

static int listen_on(struct side *s, struct rdma_cm_id **listener) {
    struct rdma_addrinfo *own;
    if (find_address(RAI_PASSIVE, &own))
        return -1;
    int result = check("rdma_create_id", rdma_create_id(s->events, listener, NULL, RDMA_PS_UDP)) ||
                 check("rdma_bind_addr", rdma_bind_addr(*listener, own->ai_src_addr)) ||
                 check("rdma_listen", rdma_listen(*listener, 8));
    rdma_freeaddrinfo(own);
    if (result == 0)
        printf("listening on %s port %s\n", args.address, args.port);
    return result;
}

static int wait_connect_request(struct side *s) {
    struct rdma_cm_event *event;
    if (wait_for_event(s->events, RDMA_CM_EVENT_CONNECT_REQUEST, KNOCK, &event))
        return -1;
    s->id = event->id;
    return check("rdma_ack_cm_event", rdma_ack_cm_event(event));
}

static int resolve(struct side *s) {
    struct rdma_addrinfo *server;
    if (find_address(0, &server))
        return -1;
    int result = check("rdma_create_id", rdma_create_id(s->events, &s->id, NULL, RDMA_PS_UDP)) ||
                 check("rdma_resolve_addr", rdma_resolve_addr(s->id, NULL, server->ai_dst_addr, RESOLVE)) ||
                 wait_and_ack(s, RDMA_CM_EVENT_ADDR_RESOLVED) ||
                 check("rdma_resolve_route", rdma_resolve_route(s->id, RESOLVE)) ||
                 wait_and_ack(s, RDMA_CM_EVENT_ROUTE_RESOLVED);
    rdma_freeaddrinfo(server);
    return result;
}

// As in lesson 02, and the queue pair is one for datagrams. It has no peer: rdma_create_qp(3) makes it ready to send at
// once, with the Q_Key that librdmacm gives to all of them.
static int create_resources(struct side *s) {
    struct ibv_context *device = s->id->verbs;
    if (check_made("ibv_alloc_pd", s->pd = ibv_alloc_pd(device)) ||
        check_made("ibv_create_comp_channel", s->completions = ibv_create_comp_channel(device)) ||
        check("fcntl", fcntl(s->completions->fd, F_SETFL, O_NONBLOCK)) ||
        check_made("ibv_create_cq", s->cq = ibv_create_cq(device, 4 * RECEIVES, NULL, s->completions, 0)))
        return -1;
    struct ibv_qp_init_attr init = {
        .send_cq = s->cq,
        .recv_cq = s->cq,
        .cap = {.max_send_wr = 8, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1,
                .max_inline_data = sizeof(struct message)},
        .qp_type = IBV_QPT_UD,
    };
    return check("rdma_create_qp", rdma_create_qp(s->id, s->pd, &init));
}

static struct message message_of(uint32_t client, uint32_t number, uint32_t word) {
    return (struct message){htobe32(MAGIC), htobe32(client), htobe32(number), htobe32(word)};
}

// rdma_accept(3) answers with our queue pair's number and its Q_Key. The private data tells the client its number.
static int accept_client(struct side *s) {
    s->client = 1;
    struct message number = message_of(s->client, 0, 0);
    struct rdma_conn_param param = {.private_data = &number, .private_data_len = sizeof number};
    return check("rdma_accept", rdma_accept(s->id, &param));
}

// An address has three parts: the way to the machine, the queue pair there, and its key. All three come with
// ESTABLISHED.
static int connect_to_server(struct side *s) {
    struct rdma_conn_param nothing = {0};
    struct rdma_cm_event *event;
    if (check("rdma_connect", rdma_connect(s->id, &nothing)) ||
        wait_for_event(s->events, RDMA_CM_EVENT_ESTABLISHED, ANSWER, &event))
        return -1;
    struct rdma_ud_param *there = &event->param.ud;
    if (there->private_data_len >= sizeof(struct message))
        s->client = be32toh(((const struct message *)there->private_data)->client);
    s->qp_num = there->qp_num;
    s->qkey = there->qkey;
    int result = check_made("ibv_create_ah", s->ah = ibv_create_ah(s->pd, &there->ah_attr));
    return check("rdma_ack_cm_event", rdma_ack_cm_event(event)) || result;
}

// ---- Datagrams: out, and in.

// Lends a part to the device: 40 bytes more than a message has. A datagram that does not fit is lost, and so is one
// that finds no receive.
static int post_receive(struct side *s, int part) {
    struct ibv_sge sge = {.addr = (uintptr_t)&s->parts[part], .length = sizeof s->parts[part], .lkey = s->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = part, .sg_list = &sge, .num_sge = 1};
    return check("ibv_post_recv", ibv_post_recv(s->id->qp, &wr, &bad));
}

static int post_receives(struct side *s) {
    int result = check_made("ibv_reg_mr", s->mr = ibv_reg_mr(s->pd, s->parts, sizeof s->parts, IBV_ACCESS_LOCAL_WRITE));
    for (int part = 0; part < RECEIVES && result == 0; part++)
        result = post_receive(s, part);
    return result;
}

// Each request names where it goes. Inline: the call copies the bytes, so the message may go when it returns.
static int send_message(struct side *s, uint32_t number, uint32_t word) {
    struct message message = message_of(s->client, number, word);
    struct ibv_sge sge = {.addr = (uintptr_t)&message, .length = sizeof message};
    struct ibv_send_wr *bad, wr = {
        .wr_id = RECEIVES,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
        .wr.ud = {.ah = s->ah, .remote_qpn = s->qp_num, .remote_qkey = s->qkey},
    };
    return check("ibv_post_send", ibv_post_send(s->id->qp, &wr, &bad));
}

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Arm, poll, and only then sleep, as in lesson 05. 0: there is a completion; 1: the time is up.
static int next_completion(struct side *s, long deadline, struct ibv_wc *wc) {
    while (true) {
        if (check("ibv_req_notify_cq", ibv_req_notify_cq(s->cq, 0)))
            return -1;
        int count = ibv_poll_cq(s->cq, 1, wc);
        if (count)
            return count == 1 ? 0 : wrong("ibv_poll_cq failed: the CQ is broken");
        long left = deadline - now_ms();
        struct pollfd fd = {.fd = s->completions->fd, .events = POLLIN};
        if (left <= 0 || poll(&fd, 1, left) == 0)
            return 1;
        struct ibv_cq *cq;
        void *context;
        if (ibv_get_cq_event(s->completions, &cq, &context) == 0)
            ibv_ack_cq_events(cq, 1);
    }
}

// The next message, whatever it is, copied: its part is lent again. A SEND's completion says no more than that it was
// sent.
static int take(struct side *s, long deadline, struct ibv_wc *wc, struct part *part) {
    while (true) {
        int result = next_completion(s, deadline, wc);
        if (result)
            return result;
        if (wc->status != IBV_WC_SUCCESS) {
            fprintf(stderr, "a request completed with status %d (%s)\n", wc->status, ibv_wc_status_str(wc->status));
            return -1;
        }
        if (wc->wr_id >= RECEIVES)
            continue;
        *part = s->parts[wc->wr_id];
        if (post_receive(s, wc->wr_id))
            return -1;
        // Anybody can send a datagram.
        if (wc->byte_len >= sizeof *part && part->message.magic == htobe32(MAGIC))
            return 0;
    }
}

// ---- Requests and answers.

// The way back to who has sent this: the completion names its queue pair, what lies in front its machine.
static int find_way_back(struct side *s, struct ibv_wc *wc, struct part *part) {
    if (s->ah)
        return 0;
    s->qp_num = wc->src_qp;
    s->qkey = RDMA_UDP_QKEY;
    s->ah = ibv_create_ah_from_wc(s->pd, wc, (struct ibv_grh *)part->front, PORT);
    return check_made("ibv_create_ah_from_wc", s->ah);
}

// Puts the coins into the box, unless that was done: a request that comes again has the number of the last one, and the
// same answer.
static int answer(struct side *s, struct ibv_wc *wc, struct part *part, bool *is_over) {
    uint32_t number = be32toh(part->message.number), word = be32toh(part->message.word);
    if (number < s->last)
        return 0;
    if (number > s->last)
        s->coins += word;
    s->last = number;
    *is_over = word == GOODBYE;
    return find_way_back(s, wc, part) || send_message(s, number, s->coins);
}

// Answers until the goodbye, and stays a little: whoever has not heard the last answer asks again.
static int serve(struct side *s) {
    bool is_over = false;
    while (true) {
        struct ibv_wc wc;
        struct part part;
        int result = take(s, now_ms() + (is_over ? LINGER : ANSWER), &wc, &part);
        if (result == 1)
            return is_over ? 0 : wrong("waited for a request, in vain. When a client is gone, nobody tells");
        if (result || answer(s, &wc, &part, &is_over))
            return -1;
    }
}

// Waits for the answer to this request. An answer with another number is an old one: it was slow, or came twice.
static int wait_for_answer(struct side *s, uint32_t number, long deadline, uint32_t *word) {
    struct ibv_wc wc;
    struct part part;
    int result;
    do
        result = take(s, deadline, &wc, &part);
    while (result == 0 && (be32toh(part.message.client) != s->client || be32toh(part.message.number) != number));
    *word = be32toh(part.message.word);
    return result;
}

// Asks until an answer comes. The number stays the same: by it the server knows what it has carried out.
static int ask(struct side *s, uint32_t number, uint32_t word, uint32_t *coins) {
    for (int tries = 0; tries < TRIES; tries++) {
        if (send_message(s, number, word))
            return -1;
        int result = wait_for_answer(s, number, now_ms() + TIMEOUT, coins);
        if (result != 1)
            return result;
        printf("request %u: no answer in %d ms\n", number, TIMEOUT);
    }
    return wrong("no answer: is the server there?");
}

static int put_coins(struct side *s) {
    uint32_t coins, number = 1;
    for (; number <= args.requests; number++) {
        if (ask(s, number, COINS, &coins))
            return -1;
        printf("request %u: %u coins are in the box\n", number, coins);
    }
    return ask(s, number, GOODBYE, &coins);
}

// ---- Both sides from beginning to end.

// Destroys in the one right order: what uses something goes before what it uses.
static int teardown(struct side *s) {
    int result = 0;
    if (s->ah)
        result |= check("ibv_destroy_ah", ibv_destroy_ah(s->ah));
    if (s->id && s->id->qp)
        rdma_destroy_qp(s->id);
    if (s->mr)
        result |= check("ibv_dereg_mr", ibv_dereg_mr(s->mr));
    if (s->cq)
        result |= check("ibv_destroy_cq", ibv_destroy_cq(s->cq));
    if (s->completions)
        result |= check("ibv_destroy_comp_channel", ibv_destroy_comp_channel(s->completions));
    if (s->pd)
        result |= check("ibv_dealloc_pd", ibv_dealloc_pd(s->pd));
    if (s->id)
        result |= check("rdma_destroy_id", rdma_destroy_id(s->id));
    return result;
}

static int run_client(struct side *s) {
    return resolve(s) || create_resources(s) || post_receives(s) || connect_to_server(s) || put_coins(s);
}

static int run_server(struct side *s, struct rdma_cm_id **listener) {
    return listen_on(s, listener) || wait_connect_request(s) || create_resources(s) || post_receives(s) ||
           accept_client(s) || serve(s);
}

static int run(void) {
    struct side s = {0};
    struct rdma_cm_id *listener = NULL;
    if (check_made("rdma_create_event_channel", s.events = rdma_create_event_channel()))
        return -1;
    int result = args.is_server ? run_server(&s, &listener) : run_client(&s);
    result |= teardown(&s);
    if (listener)
        result |= check("rdma_destroy_id", rdma_destroy_id(listener));
    rdma_destroy_event_channel(s.events);
    return result;
}

static const char USAGE[] = "usage: datagrams server [-a ADDR] [-p PORT]\n"
                            "       datagrams client -a ADDR [-p PORT] [--requests N]\n";

// Reads the command line. False: something is wrong with it.
static bool parse(int argc, char **argv) {
    static const struct option options[] = {
        {"address", 1, 0, 'a'}, {"port", 1, 0, 'p'}, {"requests", 1, 0, 'r'}, {"transport", 1, 0, 't'}, {0},
    };
    for (int option; (option = getopt_long(argc, argv, "a:p:", options, NULL)) != -1;) {
        switch (option) {
        case 'a': args.address = optarg; break;
        case 'p': args.port = optarg; break;
        case 'r': args.requests = strtol(optarg, NULL, 10); break;
        case 't': // As the lesson's own program has it. This one has datagrams alone.
            if (strcmp(optarg, "ud") != 0)
                return false;
            break;
        default: return false;
        }
    }
    args.is_server = optind == argc - 1 && strcmp(argv[optind], "server") == 0;
    if (args.is_server && !args.address)
        args.address = "::";
    return args.is_server || (optind == argc - 1 && strcmp(argv[optind], "client") == 0 && args.address);
}

// Exit status: 0 done, 1 failed, 2 wrong usage.
int main(int argc, char **argv) {
    // A line at a time, also into a pipe: so they stand in the order in which things happen.
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!parse(argc, argv)) {
        fprintf(stderr, "%s", USAGE);
        return 2;
    }
    return run() ? 1 : 0;
}
