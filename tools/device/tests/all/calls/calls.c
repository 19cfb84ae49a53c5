/* Calls of libibverbs, and on the device's own files, that the kernel answers in a way of its own: odd memory, odd sizes, few descriptors,
 * the wrong order. Each line is `what | call | what it returned`; calls.txt has those of rdma_rxe (Linux 6.1). No peer: two queue pairs of
 * this program look at each other. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAGE 4096
#define ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static const char constant[PAGE] __attribute__((aligned(PAGE))) = "a constant";

static void say(const char *what, const char *call, int error)
{
	printf("%s | %s | %s\n", what, call, error ? strerrorname_np(error) : "ok");
}

static void *map(size_t length, int protection)
{
	return mmap(NULL, length, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Memory. */

static void registers(const char *call, const void *start, size_t length, int access)
{
	errno = 0;
	struct ibv_mr *mr = ibv_reg_mr(pd, (void *)start, length, access);

	say("memory", call, mr ? 0 : errno);
	if (mr)
		ibv_dereg_mr(mr);
}

static char *file_of_one_page(int protection, int flags)
{
	int file = memfd_create("calls", 0);

	if (ftruncate(file, PAGE))
		exit(2);
	return mmap(NULL, 2 * PAGE, protection, flags, file, 0);
}

static void memory(void)
{
	char *good = map(1 << 20, PROT_READ | PROT_WRITE);
	char *constant_page = map(2 * PAGE, PROT_READ), *closed = map(2 * PAGE, PROT_NONE);
	char *mixed = map(2 * PAGE, PROT_READ | PROT_WRITE);

	mprotect(mixed + PAGE, PAGE, PROT_READ);
	registers("nothing", good, 0, ALL);
	registers("one byte, on no boundary", good + 3, 1, ALL);
	registers("constant memory, to read", constant_page, PAGE, 0);
	registers("constant memory, for peers to read", constant_page, PAGE, IBV_ACCESS_REMOTE_READ);
	registers("constant memory, LOCAL_WRITE", constant_page, PAGE, IBV_ACCESS_LOCAL_WRITE);
	registers("constant memory, to bind windows", constant_page, PAGE, IBV_ACCESS_MW_BIND);
	registers(".rodata, for peers to read", constant, PAGE, IBV_ACCESS_REMOTE_READ);
	registers(".rodata, LOCAL_WRITE", constant, PAGE, IBV_ACCESS_LOCAL_WRITE);
	registers("a page and a constant one, LOCAL_WRITE", mixed, 2 * PAGE, IBV_ACCESS_LOCAL_WRITE);
	registers("closed memory, to read", closed, PAGE, 0);
	registers("closed memory, LOCAL_WRITE", closed, PAGE, IBV_ACCESS_LOCAL_WRITE);
	registers("at NULL", NULL, PAGE, IBV_ACCESS_LOCAL_WRITE);
	registers("where nothing is", (void *)0x10000, PAGE, IBV_ACCESS_LOCAL_WRITE);
	registers("over the end", closed - PAGE, 1UL << 40, IBV_ACCESS_LOCAL_WRITE);
	registers("of the kernel", (void *)0xffff800000000000UL, PAGE, IBV_ACCESS_LOCAL_WRITE);
	registers("around the end of all addresses", (void *)0xfffffffffffff000UL, 2 * PAGE, IBV_ACCESS_LOCAL_WRITE);
	registers("up to the end of all addresses", (void *)0xfffffffffffff000UL, PAGE - 1, IBV_ACCESS_LOCAL_WRITE);
	registers("as long as can be", good, ~0UL, IBV_ACCESS_LOCAL_WRITE);
	registers("a file, shared", file_of_one_page(PROT_READ | PROT_WRITE, MAP_SHARED), PAGE, ALL);
	registers("a file, past its end", file_of_one_page(PROT_READ | PROT_WRITE, MAP_SHARED), 2 * PAGE, ALL);
}

/* Memory that is taken away after it was registered. */

static struct ibv_qp *create_qp(struct ibv_qp_cap cap, int type)
{
	struct ibv_qp_init_attr attr = { .send_cq = cq, .recv_cq = cq, .cap = cap, .qp_type = type };

	return ibv_create_qp(pd, &attr);
}

static int connect_qp(struct ibv_qp *qp, uint32_t other)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = other, .min_rnr_timer = 12,
				    .max_dest_rd_atomic = 1, .ah_attr = { .is_global = 1, .port_num = 1 } };

	ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid);
	if (ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ||
	    ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		return errno;
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = attr.rnr_retry = 7;
	attr.max_rd_atomic = 1;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			     IBV_QP_MAX_QP_RD_ATOMIC);
}

/* Writes from one region to another; the status. */
static int write_to(struct ibv_qp *qp, struct ibv_mr *from, struct ibv_mr *to)
{
	struct ibv_sge piece = { (uintptr_t)from->addr, 16, from->lkey };
	struct ibv_send_wr request = { .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
				       .wr.rdma = { (uintptr_t)to->addr, to->rkey } }, *bad;
	struct ibv_wc wc = { 0 };

	if (ibv_post_send(qp, &request, &bad))
		exit(3);
	while (ibv_poll_cq(cq, 1, &wc) == 0)
		;
	return wc.status;
}

static void written(const char *call, int status, int is_there)
{
	printf("taken away | %s | %s, %s\n", call, ibv_wc_status_str(status), is_there ? "written" : "not written");
}

static void taken_away(void)
{
	char *source = map(PAGE, PROT_READ | PROT_WRITE), *page = map(PAGE, PROT_READ | PROT_WRITE);
	char *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), *gone = map(PAGE, PROT_READ | PROT_WRITE);
	struct ibv_mr *from = ibv_reg_mr(pd, source, PAGE, 0), *to = ibv_reg_mr(pd, page, PAGE, ALL);
	struct ibv_mr *to_shared = ibv_reg_mr(pd, shared, PAGE, ALL), *to_gone = ibv_reg_mr(pd, gone, PAGE, ALL);
	struct ibv_qp_cap cap = { 4, 4, 1, 1, 0 };
	struct ibv_qp *pairs[2][2];
	int status;

	/* A queue is memory as well: made now, none comes to where something is unmapped. */
	for (int i = 0; i < 2; i++) {
		pairs[i][0] = create_qp(cap, IBV_QPT_RC);
		pairs[i][1] = create_qp(cap, IBV_QPT_RC);
		if (connect_qp(pairs[i][0], pairs[i][1]->qp_num) || connect_qp(pairs[i][1], pairs[i][0]->qp_num))
			exit(3);
	}
	strcpy(source, "by a peer");
	mprotect(page, PAGE, PROT_READ);
	status = write_to(pairs[0][0], from, to);
	written("to write, of private memory", status, !strcmp(page, "by a peer"));
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
	memset(page, 0, PAGE);
	mprotect(source, PAGE, PROT_NONE);
	status = write_to(pairs[0][0], from, to);
	written("to read, of private memory", status, !strcmp(page, "by a peer"));
	mprotect(source, PAGE, PROT_READ | PROT_WRITE);
	mprotect(shared, PAGE, PROT_READ);
	status = write_to(pairs[0][0], from, to_shared);
	written("to write, of shared memory", status, !strcmp(shared, "by a peer"));
	munmap(gone, PAGE);
	written("all, by munmap", write_to(pairs[1][0], from, to_gone), 0);
	say("taken away", "ibv_dereg_mr of what is unmapped", ibv_dereg_mr(to_gone));
	for (int i = 0; i < 4; i++)
		ibv_destroy_qp(pairs[i / 2][i % 2]);
}

/* Queue pairs. */

static void creates(const char *call, struct ibv_qp_cap cap, int type, uint32_t pieces)
{
	struct ibv_qp_init_attr attr = { .send_cq = cq, .recv_cq = cq, .cap = cap, .qp_type = type };

	errno = 0;
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	say("queue pair", call, qp ? 0 : errno);
	if (qp && pieces)
		say("queue pair, pieces of a send", call, attr.cap.max_send_sge == pieces ? 0 : ERANGE);
	if (qp)
		ibv_destroy_qp(qp);
}

static void queue_pairs(void)
{
	struct ibv_qp_cap small = { 1, 1, 1, 1, 0 };

	creates("of nothing", (struct ibv_qp_cap){ 0 }, IBV_QPT_RC, 0);
	creates("32 pieces", (struct ibv_qp_cap){ 1, 1, 32, 32, 0 }, IBV_QPT_RC, 32);
	creates("33 pieces to send", (struct ibv_qp_cap){ 1, 1, 33, 1, 0 }, IBV_QPT_RC, 0);
	creates("33 pieces to receive", (struct ibv_qp_cap){ 1, 1, 1, 33, 0 }, IBV_QPT_RC, 0);
	creates("40 bytes inline", (struct ibv_qp_cap){ 1, 1, 1, 1, 40 }, IBV_QPT_RC, 2);
	creates("512 bytes inline", (struct ibv_qp_cap){ 1, 1, 1, 1, 512 }, IBV_QPT_RC, 32);
	creates("513 bytes inline", (struct ibv_qp_cap){ 1, 1, 1, 1, 513 }, IBV_QPT_RC, 0);
	creates("1024 bytes inline", (struct ibv_qp_cap){ 1, 1, 1, 1, 1024 }, IBV_QPT_RC, 0);
	creates("of a driver's own type", small, 0xff, 0);
	creates("of type 77", small, 77, 0);
	creates("of type 0", small, 0, 0);
}

/* Everything in the wrong order. */

static void order(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq *completions = ibv_create_cq(context, 8, NULL, channel, 0);
	struct ibv_pd *domain = ibv_alloc_pd(context);
	struct ibv_srq_init_attr shared = { .attr = { 4, 1, 0 } };
	struct ibv_srq *srq = ibv_create_srq(domain, &shared);
	struct ibv_qp_init_attr attr = { .send_cq = completions, .recv_cq = completions, .srq = srq, .qp_type = IBV_QPT_RC,
					 .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_qp *qp = ibv_create_qp(domain, &attr);
	struct ibv_port_attr port;
	uint16_t pkey;

	say("order", "ibv_dealloc_pd first", ibv_dealloc_pd(domain));
	say("order", "ibv_destroy_cq first", ibv_destroy_cq(completions));
	say("order", "ibv_destroy_comp_channel first", ibv_destroy_comp_channel(channel));
	say("order", "ibv_destroy_srq first", ibv_destroy_srq(srq));
	say("order", "ibv_resize_cq to 0", ibv_resize_cq(completions, 0));
	say("order", "ibv_resize_cq to 100", ibv_resize_cq(completions, 100));
	say("order", "ibv_resize_cq to 2^30", ibv_resize_cq(completions, 1 << 30));
	say("order", "ibv_query_port 0", ibv_query_port(context, 0, &port));
	say("order", "ibv_query_port 2", ibv_query_port(context, 2, &port));
	say("order", "ibv_query_pkey 0", ibv_query_pkey(context, 1, 0, &pkey) ? EINVAL : 0);
	say("order", "ibv_destroy_qp", ibv_destroy_qp(qp));
	say("order", "ibv_destroy_srq", ibv_destroy_srq(srq));
	say("order", "ibv_dealloc_pd", ibv_dealloc_pd(domain));
	say("order", "ibv_destroy_cq", ibv_destroy_cq(completions));
	say("order", "ibv_destroy_comp_channel", ibv_destroy_comp_channel(channel));
}

/* The files themselves. */

static void maps(const char *call, int file, off_t offset)
{
	errno = 0;
	void *there = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, offset);

	say("mmap", call, there == MAP_FAILED ? errno : 0);
}

static void mappings(void)
{
	int manager = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);

	maps("of uverbs0, at the beginning", context->cmd_fd, 0);
	maps("of uverbs0, further on", context->cmd_fd, 7 * PAGE);
	maps("of uverbs0, far away", context->cmd_fd, 1L << 50);
	maps("of rdma_cm", manager, 0);
	close(manager);
}

static int query_port(int file)
{
	char answer[256];
	struct {
		uint32_t command;
		uint16_t in, out;
		uint64_t response;
		uint8_t port, reserved[7];
	} query = { 2, 6, 16, (uintptr_t)answer, 1, { 0 } };

	errno = 0;
	return write(file, &query, sizeof(query)) < 0 ? errno : 0;
}

/* The same open file, as it comes out at the other end of a socket. */
static int through_a_socket(int file)
{
	int ends[2], got;
	char space[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &file, sizeof(int));
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || sendmsg(ends[0], &message, 0) < 0 || recvmsg(ends[1], &message, 0) < 0)
		return -1;
	memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	close(ends[0]);
	close(ends[1]);
	return got;
}

static void copies(void)
{
	int file = context->cmd_fd;

	say("copy of uverbs0", "dup", query_port(dup(file)));
	say("copy of uverbs0", "F_DUPFD_CLOEXEC", query_port(fcntl(file, F_DUPFD_CLOEXEC, 5)));
	say("copy of uverbs0", "dup2 to 600", query_port(dup2(file, 600)));
	say("copy of uverbs0", "dup2 to 50", query_port(dup2(file, 50)));
	say("copy of uverbs0", "dup2 to 40", query_port(dup2(file, 40)));
	say("copy of uverbs0", "SCM_RIGHTS", query_port(through_a_socket(file)));
}

/* With so many descriptors at most, of which these are taken. */
static void few(struct ibv_device *device, int most, int taken)
{
	struct rlimit before, limit;
	char name[64];
	int files = 0, file = -1;

	getrlimit(RLIMIT_NOFILE, &before);
	limit = before;
	limit.rlim_cur = most;
	setrlimit(RLIMIT_NOFILE, &limit);
	while (file + 1 < taken && (file = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		files++;
	snprintf(name, sizeof(name), "at most %d, %d taken", most, taken);
	errno = 0;
	struct ibv_context *opened = ibv_open_device(device);

	say("descriptors, ibv_open_device", name, opened ? 0 : errno);
	errno = 0;
	struct rdma_event_channel *channel = rdma_create_event_channel();

	say("descriptors, rdma_create_event_channel", name, channel ? 0 : errno);
	if (opened && channel) {
		int copy = dup(opened->cmd_fd);

		say("descriptors, a copy", name, query_port(copy));
		close(copy);
	}
	if (channel)
		rdma_destroy_event_channel(channel);
	if (opened)
		ibv_close_device(opened);
	while (files--)
		close(file--);
	setrlimit(RLIMIT_NOFILE, &before);
}

int main(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!devices || !devices[0])
		return 2;
	few(devices[0], 16, 0);
	few(devices[0], 64, 0);
	few(devices[0], 128, 70);
	few(devices[0], 256, 200);
	few(devices[0], 4096, 1090);
	context = ibv_open_device(devices[0]);
	if (!context || !(pd = ibv_alloc_pd(context)))
		return 2;
	mappings();
	cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	if (!cq)
		return 2;
	memory();
	taken_away();
	queue_pairs();
	order();
	copies();
	return 0;
}
