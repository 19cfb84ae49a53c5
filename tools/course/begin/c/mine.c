/* Your own RDMA program. `make step` says what comes next, and judges what you have written.
 *
 * Each call has a manual page: `man rdma_create_id`, `man ibv_reg_mr`. Build with `make`. */
#define _GNU_SOURCE
#include <getopt.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The command line. Text or len are what a side will write into the other's memory: the client from lesson 04 on, both in lesson 06. */
struct args {
    const char *address; /* the server's own, or the server to connect to */
    const char *port;
    const char *text;
    size_t len; /* 0: write the text */
    const char *mode; /* lessons 06 and 07: write, or read; */
    const char *closer; /* and which side hangs up first: client, or server */
    const char *transport; /* lesson 11: rc, a connection, or ud, datagrams; */
    long requests; /* and how often a client of datagrams asks */
};

/* Runs when the program is called as `mine server`. Gives 0, or 1 if it failed. */
static int server(const struct args *args) {
    (void)args;
    return 0;
}

/* Runs when it is called as `mine client -a ADDRESS`. */
static int client(const struct args *args) {
    (void)args;
    return 0;
}

int main(int argc, char **argv) {
    struct args args = {.address = NULL, .port = "7471", .text = "my first RDMA WRITE", .mode = "write", .closer = "client", .transport = "rc", .requests = 2};
    static const struct option options[] = {
        {"address", required_argument, NULL, 'a'}, {"port", required_argument, NULL, 'p'},
        {"text", required_argument, NULL, 's'}, {"len", required_argument, NULL, 'l'},
        {"mode", required_argument, NULL, 'm'}, {"closer", required_argument, NULL, 'c'},
        {"transport", required_argument, NULL, 't'}, {"requests", required_argument, NULL, 'r'},
        {NULL, 0, NULL, 0},
    };
    const char *side = argc > 1 ? argv[1] : "";

    /* A line is seen when it is printed, also if nobody watches at a terminal. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    optind = 2;
    for (int option; (option = getopt_long(argc, argv, "a:p:s:l:m:", options, NULL)) != -1;) {
        switch (option) {
        case 'a': args.address = optarg; break;
        case 'p': args.port = optarg; break;
        case 's': args.text = optarg; break;
        case 'l': args.len = strtoul(optarg, NULL, 10); break;
        case 'm': args.mode = optarg; break;
        case 'c': args.closer = optarg; break;
        case 't': args.transport = optarg; break;
        case 'r': args.requests = strtol(optarg, NULL, 10); break;
        default: return 2;
        }
    }
    if (strcmp(side, "server") == 0)
        return server(&args);
    if (strcmp(side, "client") == 0 && args.address != NULL)
        return client(&args);
    fprintf(stderr, "usage: mine server [-a ADDRESS] [-p PORT] [-s TEXT | --len N] | mine client -a ADDRESS [as before]\n");
    return 2;
}
