/* Sends UDP frames by a timetable, or notes when frames come. Built and run by tests/traffic/linux.

   stream send ADDRESS SECONDS PORT:CLASS:BYTES:RATE:BURST...
       For each stream BURST frames of so many bytes (with the Ethernet header) at once, RATE of them a second in all, from and to UDP port
       PORT, of IP precedence CLASS. Says `PORT FRAMES` of each stream at the end.
   stream take INTERFACE FILE
       Notes UDP frames until its standard input ends: records of 24 bytes with port, length, number, when it was sent and when the kernel
       took it from the interface, both by the wall clock in nanoseconds. Says how many frames it missed.
   stream gaps SECONDS
       Looks at the clock all the time. Says which share of the time something that is due would have to wait for 20 us or more, how long at
       the 99.9th percentile, and at most, in nanoseconds: the times in which the machine does something else. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_STREAMS 128
#define MAX_BURST 64
#define HEADERS 42
#define ROOM 1600

struct note {
    uint16_t port, len;
    uint32_t number;
    uint64_t sent_ns, taken_ns;
};

struct stream {
    int socket, port, class, bytes, burst;
    double rate;
    uint64_t next_ns, begun_ns;
    uint32_t count;
};

static void check(int failed, const char *what)
{
    if (failed) {
        perror(what);
        exit(1);
    }
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void send_burst(struct stream *stream)
{
    static char room[MAX_BURST][ROOM];
    struct mmsghdr messages[MAX_BURST] = {0};
    struct iovec parts[MAX_BURST];
    uint64_t now = clock_ns(CLOCK_REALTIME);
    for (int n = 0; n < stream->burst; n++) {
        uint32_t number = stream->count + n;
        memcpy(room[n], &number, 4);
        memcpy(room[n] + 8, &now, 8);
        parts[n] = (struct iovec){room[n], stream->bytes - HEADERS};
        messages[n].msg_hdr = (struct msghdr){.msg_iov = &parts[n], .msg_iovlen = 1};
    }
    int sent = sendmmsg(stream->socket, messages, stream->burst, 0);
    check(sent < 0 && errno != ENOBUFS && errno != EAGAIN, "sendmmsg");
    if (sent > 0)
        stream->count += sent;
}

static int send_streams(const char *address, double seconds, int count, char **words)
{
    static struct stream streams[MAX_STREAMS];
    check(count > MAX_STREAMS, "number of streams");
    uint64_t begin = clock_ns(CLOCK_MONOTONIC) + 10000000, end = begin + seconds * 1e9;
    for (int n = 0; n < count; n++) {
        struct stream *stream = &streams[n];
        int read = sscanf(words[n], "%d:%d:%d:%lf:%d", &stream->port, &stream->class, &stream->bytes, &stream->rate, &stream->burst);
        check(read != 5 || stream->burst > MAX_BURST || stream->bytes > ROOM || stream->bytes < HEADERS + 16, words[n]);
        stream->socket = socket(AF_INET, SOCK_DGRAM, 0);
        int service = stream->class << 5, room = 1 << 22;
        check(setsockopt(stream->socket, IPPROTO_IP, IP_TOS, &service, sizeof service), "IP_TOS");
        check(setsockopt(stream->socket, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room), "SO_SNDBUFFORCE");
        struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(stream->port)}, there = here;
        check(bind(stream->socket, (struct sockaddr *)&here, sizeof here), "bind");
        check(inet_pton(AF_INET, address, &there.sin_addr) != 1, address);
        check(connect(stream->socket, (struct sockaddr *)&there, sizeof there), "connect");
        /* Streams do not begin together. */
        stream->begun_ns = begin + n * 1000000000.0 * stream->burst / stream->rate / count;
        stream->next_ns = stream->begun_ns;
    }
    for (uint64_t sent = 0;;) {
        struct stream *first = &streams[0];
        for (int n = 1; n < count; n++)
            if (streams[n].next_ns < first->next_ns)
                first = &streams[n];
        if (first->next_ns >= end)
            break;
        if (first->next_ns > clock_ns(CLOCK_MONOTONIC)) {
            struct timespec until = {first->next_ns / 1000000000, first->next_ns % 1000000000};
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        }
        send_burst(first);
        sent += first->burst;
        first->next_ns = first->begun_ns + (uint64_t)((double)first->count * 1e9 / first->rate);
    }
    for (int n = 0; n < count; n++)
        printf("%d %u\n", streams[n].port, streams[n].count);
    return 0;
}

static uint64_t stamp(struct msghdr *message)
{
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part))
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec time;
            memcpy(&time, CMSG_DATA(part), sizeof time);
            return time.tv_sec * 1000000000ull + time.tv_nsec;
        }
    return 0;
}

static int take(const char *interface, const char *path)
{
    enum { AT_ONCE = 64 };
    static char room[AT_ONCE][128], control[AT_ONCE][64];
    static struct mmsghdr messages[AT_ONCE];
    struct iovec parts[AT_ONCE];
    struct sockaddr_ll from[AT_ONCE];
    int packets = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_IP)), on = 1, bytes = 1 << 28;
    check(packets < 0, "socket");
    struct sockaddr_ll here = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP), .sll_ifindex = if_nametoindex(interface)};
    check(setsockopt(packets, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes), "SO_RCVBUFFORCE");
    check(setsockopt(packets, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on), "SO_TIMESTAMPNS");
    check(bind(packets, (struct sockaddr *)&here, sizeof here), interface);
    FILE *file = fopen(path, "w");
    check(file == NULL, path);
    printf("ready\n");
    fflush(stdout);
    struct pollfd ready[2] = {{.fd = packets, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
    while (poll(ready, 2, -1) >= 0 && !(ready[1].revents && !ready[0].revents)) {
        for (int n = 0; n < AT_ONCE; n++) {
            parts[n] = (struct iovec){room[n], sizeof room[n]};
            messages[n].msg_hdr = (struct msghdr){.msg_iov = &parts[n], .msg_iovlen = 1, .msg_control = control[n], .msg_controllen = sizeof control[n],
                .msg_name = &from[n], .msg_namelen = sizeof from[n]};
        }
        int count = recvmmsg(packets, messages, AT_ONCE, MSG_DONTWAIT | MSG_TRUNC, NULL);
        for (int n = 0; n < count; n++) {
            const unsigned char *frame = (const unsigned char *)room[n];
            if (from[n].sll_pkttype == PACKET_OUTGOING || messages[n].msg_len < HEADERS + 16 || frame[23] != IPPROTO_UDP)
                continue;
            struct note note = {.port = frame[36] << 8 | frame[37], .len = messages[n].msg_len, .taken_ns = stamp(&messages[n].msg_hdr)};
            memcpy(&note.number, frame + HEADERS, 4);
            memcpy(&note.sent_ns, frame + HEADERS + 8, 8);
            fwrite(&note, sizeof note, 1, file);
        }
    }
    struct tpacket_stats missed;
    socklen_t len = sizeof missed;
    check(getsockopt(packets, SOL_PACKET, PACKET_STATISTICS, &missed, &len), "PACKET_STATISTICS");
    check(fclose(file), path);
    printf("%u\n", missed.tp_drops);
    return 0;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int gaps(double seconds)
{
    enum { MOST = 1 << 20 };
    static uint64_t found[MOST];
    size_t count = 0;
    uint64_t begin = clock_ns(CLOCK_MONOTONIC), last = begin, end = begin + seconds * 1e9;
    while (last < end) {
        uint64_t now = clock_ns(CLOCK_MONOTONIC);
        if (now - last > 1000 && count < MOST)
            found[count++] = now - last;
        last = now;
    }
    /* What is due at any time of a gap waits until its end. */
    qsort(found, count, sizeof *found, by_value);
    double time = last - begin, over = 0;
    for (size_t n = 0; n < count; n++)
        over += found[n] > 20000 ? found[n] - 20000 : 0;
    /* The wait at the percentile is where the time that is left of all gaps is a thousandth. */
    double wait = 0, left = 0;
    for (size_t n = count; n-- > 0;) {
        double lower = n > 0 ? found[n - 1] : 0, longer = count - n;
        if (left + longer * (found[n] - lower) >= time / 1000) {
            wait = found[n] - (time / 1000 - left) / longer;
            break;
        }
        left += longer * (found[n] - lower);
    }
    printf("%f %.0f %.0f\n", over / time, wait, count ? (double)found[count - 1] : 0);
    return 0;
}

int main(int count, char **words)
{
    if (count == 3 && !strcmp(words[1], "gaps"))
        return gaps(atof(words[2]));
    if (count > 4 && !strcmp(words[1], "send"))
        return send_streams(words[2], atof(words[3]), count - 4, words + 4);
    if (count == 4 && !strcmp(words[1], "take"))
        return take(words[2], words[3]);
    fprintf(stderr, "stream send ADDRESS SECONDS STREAM... | stream take INTERFACE FILE | stream gaps SECONDS\n");
    return 2;
}
