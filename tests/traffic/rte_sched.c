/* DPDK's rte_sched with the traffic of `cargo bench -p millrace-traffic -- levels WAITING SUBPORTS`: 4096 queues, so many subports
   with 256 pipes of 16 queues together, no rate below what is offered. Bursts of 64 come and leave; frames that have left come again. Prints Mpps by
   processor time: best, median.
   Built and run by tests/traffic/levels. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_sched.h>

#define BURST 64
#define PIECES 9
#define PACKETS (1 << 23)
#define SEQUENCE (1 << 16)
/* SUBPORTS is said by who compiles it. */
#define PIPES (256 / SUBPORTS)
/* 400 Gbit/s, in bytes a second. */
#define RATE 50000000000ull

static uint64_t state = 1;

static uint64_t next_number(void)
{
    state += 0x9e3779b97f4a7c15ull;
    uint64_t z = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static struct { uint32_t queue, len; } sequence[SEQUENCE];

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check(int failed, const char *what)
{
    if (failed) {
        fprintf(stderr, "%s failed: %d\n", what, failed);
        exit(1);
    }
}

static struct rte_sched_port *configured(void)
{
    static struct rte_sched_subport_profile_params profile = {.tb_rate = RATE, .tb_size = 1 << 26, .tc_period = 10};
    static struct rte_sched_pipe_params pipe = {.tb_rate = RATE, .tb_size = 1 << 26, .tc_period = 10, .tc_ov_weight = 1, .wrr_weights = {1, 1, 1, 1}};
    static struct rte_sched_subport_params subport = {
        .n_pipes_per_subport_enabled = PIPES, .pipe_profiles = &pipe, .n_pipe_profiles = 1, .n_max_pipe_profiles = 1};
    for (int class = 0; class < RTE_SCHED_TRAFFIC_CLASSES_PER_PIPE; class++) {
        profile.tc_rate[class] = pipe.tc_rate[class] = RATE;
        subport.qsize[class] = 1024;
    }
    struct rte_sched_port_params params = {
        .name = "port", .socket = 0, .rate = RATE, .mtu = 1518, .frame_overhead = 24, .n_subports_per_port = SUBPORTS,
        .subport_profiles = &profile, .n_subport_profiles = 1, .n_max_subport_profiles = 1, .n_pipes_per_subport = PIPES};
    struct rte_sched_port *port = rte_sched_port_config(&params);
    check(port == NULL, "rte_sched_port_config");
    for (int number = 0; number < SUBPORTS; number++) {
        check(rte_sched_subport_config(port, number, &subport, 0), "rte_sched_subport_config");
        for (int pipe_number = 0; pipe_number < PIPES; pipe_number++)
            check(rte_sched_pipe_config(port, number, pipe_number, 0), "rte_sched_pipe_config");
    }
    return port;
}

int main(int count, char **words)
{
    int used = rte_eal_init(count, words);
    check(used < 0, "rte_eal_init");
    size_t waiting = used + 1 < count ? strtoul(words[used + 1], NULL, 10) : 8192;
    size_t frames = (waiting + BURST - 1) / BURST * BURST + 4 * BURST;
    struct rte_mempool *pool = rte_pktmbuf_pool_create("frames", frames, 0, 0, 256, 0);
    check(pool == NULL, "rte_pktmbuf_pool_create");
    struct rte_sched_port *port = configured();
    for (int n = 0; n < SEQUENCE; n++) {
        uint64_t number = next_number();
        sequence[n].queue = (uint32_t)(number >> 32) % 4096;
        sequence[n].len = 64 + (uint32_t)number % 1455;
    }
    struct rte_mbuf **free = malloc(frames * sizeof *free);
    size_t left = frames, at = 0;
    check(rte_pktmbuf_alloc_bulk(pool, free, frames), "rte_pktmbuf_alloc_bulk");
    double pieces[PIECES];
    uint64_t refused = 0;
    for (int piece = -1; piece < PIECES; piece++) {
        struct timespec start, end;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
        uint64_t sent = 0, goal = piece < 0 ? 0 : PACKETS;
        size_t first = piece < 0 ? (waiting + BURST - 1) / BURST : 0;
        while (sent < goal || first > 0) {
            if (left >= BURST) {
                struct rte_mbuf *burst[BURST];
                for (int n = 0; n < BURST; n++) {
                    struct rte_mbuf *frame = burst[n] = free[--left];
                    uint32_t flow = sequence[at + n].queue;
                    /* As millrace has it: subport, then pipe, then queue, from the low digits on. */
                    uint32_t queue = flow / 256, class = queue < 12 ? queue : RTE_SCHED_TRAFFIC_CLASS_BE;
                    rte_sched_port_pkt_write(port, frame, flow % SUBPORTS, flow / SUBPORTS % PIPES, class, queue < 12 ? 0 : queue - 12, RTE_COLOR_GREEN);
                    frame->pkt_len = frame->data_len = sequence[at + n].len;
                }
                at = (at + BURST) % SEQUENCE;
                refused += BURST - rte_sched_port_enqueue(port, burst, BURST);
            }
            if (first > 0) {
                first--;
                continue;
            }
            int got = rte_sched_port_dequeue(port, &free[left], BURST);
            left += got;
            sent += got;
        }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        if (piece >= 0)
            pieces[piece] = sent / ((end.tv_sec - start.tv_sec) * 1e6 + (end.tv_nsec - start.tv_nsec) / 1e3);
    }
    check(refused != 0, "admission of all frames");
    if (getenv("PIECES"))
        for (int piece = 0; piece < PIECES; piece++)
            fprintf(stderr, "%.2f\n", pieces[piece]);
    qsort(pieces, PIECES, sizeof *pieces, by_value);
    printf("rte_sched: %.2f %.2f\n", pieces[PIECES - 1], pieces[PIECES / 2]);
    return 0;
}
