/* Sends UDP frames by a timetable, or notes when frames come. Built and run by tests/traffic/linux and tests/chassis/evaluate.

   stream send ADDRESS SECONDS PORT:CLASS:BYTES:RATE:BURST...
       For each stream BURST frames of so many bytes (with the Ethernet header) at once, RATE of them a second in all, from and to UDP port
       PORT, of IP precedence CLASS. Says `PORT FRAMES` of each stream at the end.
   stream take INTERFACE FILE
       Notes UDP frames until its standard input ends: records of 24 bytes with port, length, number, when it was sent and when the kernel
       took it from the interface, both by the wall clock in nanoseconds. Says how many frames it missed.
   stream frames INTERFACE FILE BYTES AT SECONDS RATE
       Sends the frames of a file, each of so many bytes, in turn: RATE of them a second, or as many as it can if that is 0. At byte AT of each
       it writes its number and when it was sent. Says how many it sent.
   stream expect INTERFACE FILE BYTES AT NOTES
       Notes frames as `take` does, whatever they are, and compares each with the frame of the file whose turn its number is, but for its
       12 bytes at AT. Those that are others have port 1 in their notes, the rest 0.
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
#define STAMP 12
#define AT_ONCE 64

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

static void *contents(const char *path, size_t bytes, size_t *count)
{
    static char room[MAX_STREAMS * ROOM];
    FILE *file = fopen(path, "r");
    check(file == NULL, path);
    *count = fread(room, 1, sizeof room, file) / bytes;
    fclose(file);
    check(*count == 0, "frames");
    return room;
}

static int packets_of(const char *interface, uint16_t protocol)
{
    int packets = socket(AF_PACKET, SOCK_RAW, 0), room = 1 << 22;
    check(packets < 0, "socket");
    check(setsockopt(packets, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room), "SO_SNDBUFFORCE");
    struct sockaddr_ll here = {.sll_family = AF_PACKET, .sll_protocol = htons(protocol), .sll_ifindex = if_nametoindex(interface)};
    check(bind(packets, (struct sockaddr *)&here, sizeof here), interface);
    return packets;
}

static int send_frames(const char *interface, const char *path, size_t bytes, size_t at, double seconds, double rate)
{
    static char room[AT_ONCE][ROOM];
    struct mmsghdr messages[AT_ONCE] = {0};
    struct iovec parts[AT_ONCE];
    check(bytes > ROOM || at + STAMP > bytes, "length of frames");
    size_t count;
    const char *frames = contents(path, bytes, &count);
    int packets = packets_of(interface, 0), burst = rate > 0 ? 1 : AT_ONCE;
    uint64_t begun = clock_ns(CLOCK_MONOTONIC) + 10000000, end = begun + seconds * 1e9, now;
    uint32_t number = 0;
    while ((now = clock_ns(CLOCK_MONOTONIC)) < end) {
        uint64_t due = rate > 0 ? begun + (uint64_t)(number * 1e9 / rate) : 0;
        if (due >= end)
            break;
        if (due > now) {
            struct timespec until = {due / 1000000000, due % 1000000000};
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        }
        uint64_t sent_ns = clock_ns(CLOCK_REALTIME);
        for (int n = 0; n < burst; n++) {
            uint32_t mine = number + n;
            memcpy(room[n], frames + mine % count * bytes, bytes);
            memcpy(room[n] + at, &mine, 4);
            memcpy(room[n] + at + 4, &sent_ns, 8);
            parts[n] = (struct iovec){room[n], bytes};
            messages[n].msg_hdr = (struct msghdr){.msg_iov = &parts[n], .msg_iovlen = 1};
        }
        int sent = sendmmsg(packets, messages, burst, 0);
        check(sent < 0 && errno != ENOBUFS && errno != EAGAIN, "sendmmsg");
        number += sent > 0 ? sent : 0;
    }
    printf("%u\n", number);
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

/* Puts the tag back that the kernel has taken out of a frame; there is room for it before. */
static char *with_tag(char *frame, struct msghdr *message, unsigned *len)
{
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        struct tpacket_auxdata more;
        if (part->cmsg_level != SOL_PACKET || part->cmsg_type != PACKET_AUXDATA)
            continue;
        memcpy(&more, CMSG_DATA(part), sizeof more);
        if (!(more.tp_status & TP_STATUS_VLAN_VALID))
            continue;
        uint16_t tag[2] = {htons(more.tp_status & TP_STATUS_VLAN_TPID_VALID ? more.tp_vlan_tpid : ETH_P_8021Q), htons(more.tp_vlan_tci)};
        memmove(frame - 4, frame, 12);
        memcpy(frame + 8, tag, 4);
        *len += 4;
        return frame - 4;
    }
    return frame;
}

static int expect(const char *interface, const char *path, size_t bytes, size_t at, const char *notes)
{
    static char room[AT_ONCE][ROOM + 4], control[AT_ONCE][128];
    static struct mmsghdr messages[AT_ONCE];
    struct iovec parts[AT_ONCE];
    struct sockaddr_ll from[AT_ONCE];
    size_t count;
    check(bytes > ROOM || at + STAMP > bytes, "length of frames");
    const char *frames = contents(path, bytes, &count);
    int packets = packets_of(interface, ETH_P_ALL), on = 1, memory = 1 << 28;
    check(setsockopt(packets, SOL_SOCKET, SO_RCVBUFFORCE, &memory, sizeof memory), "SO_RCVBUFFORCE");
    check(setsockopt(packets, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on), "SO_TIMESTAMPNS");
    check(setsockopt(packets, SOL_PACKET, PACKET_AUXDATA, &on, sizeof on), "PACKET_AUXDATA");
    FILE *file = fopen(notes, "w");
    check(file == NULL, notes);
    printf("ready\n");
    fflush(stdout);
    struct pollfd ready[2] = {{.fd = packets, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
    while (poll(ready, 2, -1) >= 0 && !(ready[1].revents && !ready[0].revents)) {
        for (int n = 0; n < AT_ONCE; n++) {
            parts[n] = (struct iovec){room[n] + 4, ROOM};
            messages[n].msg_hdr = (struct msghdr){.msg_iov = &parts[n], .msg_iovlen = 1, .msg_control = control[n], .msg_controllen = sizeof control[n],
                .msg_name = &from[n], .msg_namelen = sizeof from[n]};
        }
        int came = recvmmsg(packets, messages, AT_ONCE, MSG_DONTWAIT | MSG_TRUNC, NULL);
        for (int n = 0; n < came; n++) {
            unsigned len = messages[n].msg_len;
            if (from[n].sll_pkttype == PACKET_OUTGOING)
                continue;
            const char *frame = with_tag(room[n] + 4, &messages[n].msg_hdr, &len);
            struct note note = {.port = 1, .len = len, .taken_ns = stamp(&messages[n].msg_hdr)};
            if (len == bytes) {
                memcpy(&note.number, frame + at, 4);
                memcpy(&note.sent_ns, frame + at + 4, 8);
                const char *wanted = frames + note.number % count * bytes;
                note.port = memcmp(frame, wanted, at) || memcmp(frame + at + STAMP, wanted + at + STAMP, bytes - at - STAMP);
            }
            fwrite(&note, sizeof note, 1, file);
        }
    }
    struct tpacket_stats missed;
    socklen_t len = sizeof missed;
    check(getsockopt(packets, SOL_PACKET, PACKET_STATISTICS, &missed, &len), "PACKET_STATISTICS");
    check(fclose(file), notes);
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
    if (count == 8 && !strcmp(words[1], "frames"))
        return send_frames(words[2], words[3], atoi(words[4]), atoi(words[5]), atof(words[6]), atof(words[7]));
    if (count == 7 && !strcmp(words[1], "expect"))
        return expect(words[2], words[3], atoi(words[4]), atoi(words[5]), words[6]);
    fprintf(stderr, "stream send ADDRESS SECONDS STREAM... | stream take INTERFACE FILE | stream gaps SECONDS\n"
                    "stream frames INTERFACE FILE BYTES AT SECONDS RATE | stream expect INTERFACE FILE BYTES AT NOTES\n");
    return 2;
}
