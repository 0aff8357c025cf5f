/* DPDK's librte_meter with the traffic of `cargo bench -p millrace-tables --bench meters -- METERS STEP FILE`: two rates (RFC 2698), then one
   rate (RFC 2697, with the committed rate and the peak burst as the excess one). Prints nanoseconds a packet by processor time, the best and the
   median of nine pieces, and writes the colours of the first packets to FILE, one byte each: two rates blind and aware, one rate
   blind and aware. Its clock has cycles of a nanosecond, and its rates are whole bytes in 100 of them, so nothing is rounded.
   Built and run by tests/traffic/meter. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <rte_meter.h>

#define PACKETS (1 << 22)
#define PIECES 9
#define WRITTEN (1 << 19)
#define SEQUENCE (1 << 16)
#define MOST_METERS (1 << 16)

static struct { uint32_t meter, len; enum rte_color before; uint64_t after_ns; } sequence[SEQUENCE];
static struct rte_meter_trtcm_profile two_rates = {
    .cbs = 20000, .pbs = 30000, .cir_period = 100, .cir_bytes_per_period = 5, .pir_period = 100, .pir_bytes_per_period = 13};
static struct rte_meter_srtcm_profile one_rate = {.cbs = 20000, .ebs = 30000, .cir_period = 100, .cir_bytes_per_period = 5};
static struct rte_meter_trtcm two[MOST_METERS];
static struct rte_meter_srtcm one[MOST_METERS];
static uint8_t colors[WRITTEN];

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static void make(uint64_t meters, uint64_t step)
{
    uint64_t state = 1, most = 200 * 64 / meters / step;
    for (int n = 0; n < SEQUENCE; n++) {
        state += 0x9e3779b97f4a7c15ull;
        uint64_t z = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        z ^= z >> 31;
        sequence[n].meter = (z >> 32) % meters;
        sequence[n].len = 64 + (z & 0xffff) % 1455;
        sequence[n].before = (z >> 16 & 0xff) % 3;
        sequence[n].after_ns = (z >> 24 & 0xff) % (most + 1) * step;
    }
}

/* A kind of meter as a loop of its own, so that nothing of the library is called by a pointer. */
#define MEASURE(name, check) do { \
    for (size_t n = 0; n < MOST_METERS; n++) { \
        two[n] = (struct rte_meter_trtcm){.tc = two_rates.cbs, .tp = two_rates.pbs}; \
        one[n] = (struct rte_meter_srtcm){.tc = one_rate.cbs, .te = one_rate.ebs}; \
    } \
    uint64_t time = 0; \
    double pieces[PIECES]; \
    for (int piece = -1; piece < PIECES; piece++) { \
        double begun = now_ns(); \
        for (size_t n = 0; n < (piece < 0 ? WRITTEN : PACKETS); n++) { \
            typeof(*sequence) *packet = &sequence[n % SEQUENCE]; \
            time += packet->after_ns; \
            enum rte_color color = check; \
            if (piece < 0) \
                colors[n] = color; \
            asm volatile("" : : "r"(color)); \
        } \
        if (piece >= 0) \
            pieces[piece] = (now_ns() - begun) / PACKETS; \
    } \
    qsort(pieces, PIECES, sizeof *pieces, by_value); \
    printf("%s: %.2f %.2f\n", name, pieces[0], pieces[PIECES / 2]); \
    fwrite(colors, 1, sizeof colors, file); \
} while (0)

int main(int count, char **words)
{
    if (count != 4 || atoi(words[1]) > MOST_METERS)
        return 2;
    make(atoi(words[1]), atoi(words[2]));
    FILE *file = fopen(words[3], "w");
    MEASURE("two rates, blind", rte_meter_trtcm_color_blind_check(&two[packet->meter], &two_rates, time, packet->len));
    MEASURE("two rates, aware", rte_meter_trtcm_color_aware_check(&two[packet->meter], &two_rates, time, packet->len, packet->before));
    MEASURE("one rate, blind", rte_meter_srtcm_color_blind_check(&one[packet->meter], &one_rate, time, packet->len));
    MEASURE("one rate, aware", rte_meter_srtcm_color_aware_check(&one[packet->meter], &one_rate, time, packet->len, packet->before));
    return fclose(file) != 0;
}
