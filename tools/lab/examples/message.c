/* One message from a client to a server, with librdmacm alone.  cc -o message message.c -lrdmacm -libverbs
 * message server            receives a message and prints it
 * message client HOST TEXT  sends it */
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <string.h>

static int failed(const char *call)
{
    perror(call);
    return 1;
}

int main(int argc, char **argv)
{
    int is_server = argc == 2 && !strcmp(argv[1], "server");
    if (!is_server && argc != 4) {
        fprintf(stderr, "usage: message server | message client HOST TEXT\n");
        return 2;
    }
    struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP, .ai_flags = is_server ? RAI_PASSIVE : 0 };
    struct rdma_addrinfo *address;
    struct ibv_qp_init_attr queues = { .cap = { 1, 1, 1, 1, 0 }, .sq_sig_all = 1 };
    struct rdma_cm_id *listener = NULL, *id;
    struct ibv_wc done;
    char text[64] = "";

    if (rdma_getaddrinfo(is_server ? NULL : argv[2], "7471", &hints, &address))
        return failed("rdma_getaddrinfo");
    if (rdma_create_ep(is_server ? &listener : &id, address, NULL, &queues))
        return failed("rdma_create_ep");
    if (is_server && (rdma_listen(listener, 0) || rdma_get_request(listener, &id)))
        return failed("rdma_listen");

    struct ibv_mr *memory = rdma_reg_msgs(id, text, sizeof text);
    if (!memory)
        return failed("rdma_reg_msgs");
    if (is_server) {
        if (rdma_post_recv(id, NULL, text, sizeof text, memory) || rdma_accept(id, NULL))
            return failed("rdma_accept");
        if (rdma_get_recv_comp(id, &done) < 1 || done.status)
            return failed("rdma_get_recv_comp");
        printf("received: %.*s\n", (int)sizeof text, text);
    } else {
        strncpy(text, argv[3], sizeof text - 1);
        if (rdma_connect(id, NULL))
            return failed("rdma_connect");
        if (rdma_post_send(id, NULL, text, sizeof text, memory, 0) || rdma_get_send_comp(id, &done) < 1 || done.status)
            return failed("rdma_post_send");
        printf("sent: %s\n", text);
    }
    rdma_disconnect(id);
    rdma_dereg_mr(memory);
    rdma_destroy_ep(id);
    if (is_server)
        rdma_destroy_ep(listener);
    rdma_freeaddrinfo(address);
    return 0;
}
