/* So many queue pairs, connected in pairs: each sends its neighbour a message. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>

static struct ibv_context *context;
static union ibv_gid gid;

static int connect_qp(struct ibv_qp *qp, uint32_t other)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = other, .min_rnr_timer = 12,
				    .ah_attr = { .is_global = 1, .port_num = 1, .grh.dgid = gid } };

	if (ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ||
	    ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		return -1;
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 20;
	attr.retry_cnt = attr.rnr_retry = 7;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			     IBV_QP_MAX_QP_RD_ATOMIC);
}

int main(int count, char **words)
{
	int number = count > 1 ? atoi(words[1]) : 1000, done = 0, bad = 0;
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_pd *pd;
	struct ibv_cq *cq;

	if (!devices || !devices[0] || !(context = ibv_open_device(devices[0])) || !(pd = ibv_alloc_pd(context)) ||
	    !(cq = ibv_create_cq(context, 2 * number, NULL, NULL, 0)) || ibv_query_gid(context, 1, 0, &gid))
		return 2;
	char *bytes = calloc(number, 64);
	struct ibv_mr *mr = ibv_reg_mr(pd, bytes, number * 64UL, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp **qps = calloc(number, sizeof(*qps));

	for (int i = 0; i < number; i++) {
		struct ibv_qp_init_attr attr = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };

		if (!(qps[i] = ibv_create_qp(pd, &attr)))
			return 3;
	}
	for (int i = 0; i < number; i++) {
		struct ibv_sge piece = { (uintptr_t)bytes + i * 64, 64, mr->lkey };
		struct ibv_recv_wr receive = { .sg_list = &piece, .num_sge = 1 }, *refused;

		if (connect_qp(qps[i], qps[i ^ 1]->qp_num) || ibv_post_recv(qps[i], &receive, &refused))
			return 4;
	}
	for (int i = 0; i < number; i++) {
		struct ibv_sge piece = { (uintptr_t)bytes + i * 64, 8, mr->lkey };
		struct ibv_send_wr send = { .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
		struct ibv_send_wr *refused;

		if (ibv_post_send(qps[i], &send, &refused))
			return 5;
	}
	while (done < 2 * number) {
		struct ibv_wc wc;
		int taken = ibv_poll_cq(cq, 1, &wc);

		if (taken < 0)
			return 6;
		done += taken;
		bad += taken && wc.status;
	}
	printf("%d queue pairs, %d completions, %d bad\n", number, done, bad);
	return 0;
}
