// One message from a client to a server, which prints it. It has a bug, which docs/debugging.md looks for: don't begin a
// program of your own from it.
//
//     greeting server
//     greeting client SERVER
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT 7471
#define LEN 64 // of a message, in bytes

// A call that failed ends the program.
static void check(int failed, const char *call) {
    if (failed) {
        perror(call);
        exit(1);
    }
}

// Waits for the next event, which must be the one that we expect, and returns the id that it is about.
static struct rdma_cm_id *next(struct rdma_event_channel *channel, enum rdma_cm_event_type expected) {
    struct rdma_cm_event *event;
    check(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
    if (event->event != expected) {
        fprintf(stderr, "expected %s, got %s\n", rdma_event_str(expected), rdma_event_str(event->event));
        exit(1);
    }
    struct rdma_cm_id *id = event->id;
    check(rdma_ack_cm_event(event), "rdma_ack_cm_event");
    return id;
}

static void create_qp(struct rdma_cm_id *id) {
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
    };
    check(rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
}

// Whoever made it gives it back: first the memory's registration, then the queue pair, then the id.
static void end(struct rdma_cm_id *id, struct ibv_mr *mr) {
    check(rdma_dereg_mr(mr), "rdma_dereg_mr");
    rdma_destroy_qp(id);
    check(rdma_destroy_id(id), "rdma_destroy_id");
}

static void serve(struct rdma_event_channel *channel, char *message) {
    struct rdma_cm_id *listener;
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    check(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
    check(rdma_bind_addr(listener, (struct sockaddr *)&any), "rdma_bind_addr");
    check(rdma_listen(listener, 1), "rdma_listen");

    struct rdma_cm_id *client = next(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    create_qp(client);
    struct ibv_mr *mr = rdma_reg_msgs(listener, message, LEN);
    // Before we accept, because the client may send as soon as it's connected.
    check(rdma_post_recv(client, NULL, message, LEN, mr), "rdma_post_recv");
    check(rdma_accept(client, NULL), "rdma_accept");
    next(channel, RDMA_CM_EVENT_ESTABLISHED);
    struct ibv_wc wc;
    check(rdma_get_recv_comp(client, &wc) != 1 || wc.status, "rdma_get_recv_comp");
    printf("a client says: %s\n", message);
    next(channel, RDMA_CM_EVENT_DISCONNECTED);
    end(client, mr);
    check(rdma_destroy_id(listener), "rdma_destroy_id");
}

static void greet(struct rdma_event_channel *channel, const char *server, char *message) {
    struct rdma_cm_id *id;
    struct rdma_addrinfo *found, hints = {.ai_port_space = RDMA_PS_TCP};
    char port[6];
    snprintf(port, sizeof port, "%d", PORT);
    check(rdma_getaddrinfo(server, port, &hints, &found), "rdma_getaddrinfo");
    check(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
    check(rdma_resolve_addr(id, NULL, found->ai_dst_addr, 2000), "rdma_resolve_addr");
    rdma_freeaddrinfo(found);
    next(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    check(rdma_resolve_route(id, 2000), "rdma_resolve_route");
    next(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    create_qp(id);
    struct ibv_mr *mr = rdma_reg_msgs(id, message, LEN);
    check(mr == NULL, "rdma_reg_msgs");
    check(rdma_connect(id, NULL), "rdma_connect");
    next(channel, RDMA_CM_EVENT_ESTABLISHED);

    strcpy(message, "hello");
    check(rdma_post_send(id, NULL, message, LEN, mr, 0), "rdma_post_send");
    struct ibv_wc wc;
    check(rdma_get_send_comp(id, &wc) != 1 || wc.status, "rdma_get_send_comp");
    check(rdma_disconnect(id), "rdma_disconnect");
    next(channel, RDMA_CM_EVENT_DISCONNECTED);
    end(id, mr);
}

int main(int argc, char **argv) {
    char *message = calloc(1, LEN);
    check(message == NULL, "calloc");
    struct rdma_event_channel *channel = rdma_create_event_channel();
    check(channel == NULL, "rdma_create_event_channel");
    if (argc == 2 && strcmp(argv[1], "server") == 0) {
        serve(channel, message);
    } else if (argc == 3 && strcmp(argv[1], "client") == 0) {
        greet(channel, argv[2], message);
    } else {
        fprintf(stderr, "usage: greeting server | greeting client SERVER\n");
        return 2;
    }
    rdma_destroy_event_channel(channel);
    free(message);
}
