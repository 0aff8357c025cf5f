/* What the driver needs of DPDK that is inline there, or has structures whose layout is DPDK's own business. */

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_memory.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>
#include <rte_memzone.h>

/* The headroom of a slot is that of an mbuf and what lies before it, as private bytes of the application. */
enum { PRIVATE = 128, DESCRIPTORS = 1024 };

int millrace_errno(void) { return rte_errno; }

/* ---- Memory ---- */

struct millrace_memory {
    struct rte_mempool *pool;
    const struct rte_memzone *zone;
    /* The first slot: the private bytes of the first mbuf. */
    uint8_t *start;
    uint64_t stride;
};

struct places {
    uint8_t *first;
    uint64_t stride;
    unsigned wrong;
};

static void check_place(struct rte_mempool *pool, void *opaque, void *object, unsigned number)
{
    struct places *places = opaque;
    (void)pool;
    if (number == 0)
        places->first = object;
    if ((uint8_t *)object != places->first + number * places->stride)
        places->wrong++;
}

void millrace_memory_free(struct millrace_memory *memory)
{
    rte_mempool_free(memory->pool);
    if (memory->zone != NULL)
        rte_memzone_free(memory->zone);
}

/* Gives the pool memory that is contiguous for devices as a whole. */
static int populate_whole(struct millrace_memory *memory, const char *name, unsigned count, int socket)
{
    memory->zone = rte_memzone_reserve_aligned(name, memory->stride * count + RTE_MEMPOOL_ALIGN, socket,
                                               RTE_MEMZONE_IOVA_CONTIG, RTE_MEMPOOL_ALIGN);
    if (memory->zone == NULL)
        return -rte_errno;
    return rte_mempool_populate_iova(memory->pool, memory->zone->addr, memory->zone->iova, memory->zone->len, NULL, NULL);
}

/* Gives the pool memory that is contiguous for devices within each page. The stride divides a page, so that the first mbuf of a page
 * has that distance from the last one of the page before. */
static int populate_pages(struct millrace_memory *memory, const char *name, unsigned count, int socket)
{
    size_t page, at;
    int result = 0;

    memory->zone = rte_memzone_reserve_aligned(name, memory->stride * count, socket, 0, memory->stride);
    if (memory->zone == NULL)
        return -rte_errno;
    page = memory->zone->hugepage_sz;
    if (page == 0 || page % memory->stride != 0)
        return -ENOMEM;
    for (at = 0; at < memory->stride * count && result >= 0;) {
        char *start = (char *)memory->zone->addr + at;
        size_t length = page - (uintptr_t)start % page;
        rte_iova_t iova = rte_mem_virt2iova(start);
        if (length > memory->stride * count - at)
            length = memory->stride * count - at;
        if (iova == RTE_BAD_IOVA)
            return -EFAULT;
        result = rte_mempool_populate_iova(memory->pool, start, iova, length, NULL, NULL);
        at += length;
    }
    return result < 0 ? result : (int)memory->pool->populated_size;
}

/* `in_pages`: each mbuf takes a power of two. */
static int make_memory(struct millrace_memory *memory, const char *name, unsigned count, unsigned cache, uint16_t room, unsigned tail,
                       int socket, int in_pages)
{
    struct rte_pktmbuf_pool_private traits = { .mbuf_data_room_size = room, .mbuf_priv_size = PRIVATE };
    struct places places = { 0 };
    uint32_t size = sizeof(struct rte_mbuf) + PRIVATE + room + tail;
    unsigned flags = RTE_MEMPOOL_F_NO_IOVA_CONTIG;
    int result;

    memset(memory, 0, sizeof(*memory));
    if (in_pages) {
        struct rte_mempool_objsz sizes;
        uint32_t whole = rte_mempool_calc_obj_size(size, RTE_MEMPOOL_F_NO_SPREAD, &sizes);
        flags = RTE_MEMPOOL_F_NO_SPREAD;
        size += rte_align32pow2(whole) - whole;
    }
    /* Without the flag of memory that is not contiguous objects keep off the borders of pages. */
    memory->pool = rte_mempool_create_empty(name, count, size, cache, sizeof(traits), socket, flags);
    if (memory->pool == NULL)
        return -rte_errno;
    result = rte_mempool_set_ops_byname(memory->pool, rte_mbuf_best_mempool_ops(), NULL);
    if (result != 0)
        goto failed;
    rte_pktmbuf_pool_init(memory->pool, &traits);
    memory->stride = (uint64_t)memory->pool->header_size + memory->pool->elt_size + memory->pool->trailer_size;
    result = in_pages ? populate_pages(memory, name, count, socket) : populate_whole(memory, name, count, socket);
    if (result >= 0 && (unsigned)result != count)
        result = -ENOMEM;
    if (result < 0)
        goto failed;
    rte_mempool_obj_iter(memory->pool, rte_pktmbuf_init, NULL);
    places.stride = memory->stride;
    rte_mempool_obj_iter(memory->pool, check_place, &places);
    if (places.wrong != 0) {
        result = -EFAULT;
        goto failed;
    }
    memory->start = places.first + sizeof(struct rte_mbuf);
    return 0;

failed:
    millrace_memory_free(memory);
    memset(memory, 0, sizeof(*memory));
    return result;
}

/* One piece of memory with mbufs at equal distances. After the room of each mbuf are `tail` bytes more. Without an IOMMU there is
 * seldom one piece of many small huge pages that is contiguous for devices; each mbuf is, then. */
int millrace_memory_new(struct millrace_memory *memory, const char *name, unsigned count, unsigned cache, uint16_t room,
                        unsigned tail, int socket)
{
    int result = make_memory(memory, name, count, cache, room, tail, socket, 0);

    if (result == -ENOMEM)
        result = make_memory(memory, name, count, cache, room, tail, socket, 1);
    return result;
}

/* Where the slot of an mbuf begins, from the mbuf. */
unsigned millrace_slot_distance(void) { return sizeof(struct rte_mbuf); }

int millrace_memory_take(struct rte_mempool *pool, struct rte_mbuf **mbufs, unsigned count)
{
    return rte_mempool_get_bulk(pool, (void **)mbufs, count);
}

void millrace_memory_put(struct rte_mempool *pool, struct rte_mbuf *const *mbufs, unsigned count)
{
    rte_mempool_put_bulk(pool, (void *const *)mbufs, count);
}

/* Gives back what the pool keeps apart for this thread. */
void millrace_memory_flush(struct rte_mempool *pool)
{
    struct rte_mempool_cache *cache = rte_mempool_default_cache(pool, rte_lcore_id());
    if (cache != NULL)
        rte_mempool_cache_flush(cache, pool);
}

unsigned millrace_memory_available(const struct rte_mempool *pool) { return rte_mempool_avail_count(pool); }

/* ---- Frames ---- */

enum { WHOLE = 1, TAG_ASIDE = 2 };

struct millrace_frame {
    struct rte_mbuf *mbuf;
    uint8_t *data;
    uint32_t length;
    uint16_t tag;
    uint16_t flags;
};

unsigned millrace_receive(uint16_t port, uint16_t queue, struct millrace_frame *frames, uint16_t count)
{
    struct rte_mbuf *mbufs[64];
    uint16_t received = rte_eth_rx_burst(port, queue, mbufs, RTE_MIN(count, 64));
    for (uint16_t at = 0; at < received; at++)
        rte_prefetch0(rte_pktmbuf_mtod(mbufs[at], void *));
    for (uint16_t at = 0; at < received; at++) {
        struct rte_mbuf *mbuf = mbufs[at];
        struct millrace_frame *frame = &frames[at];
        frame->mbuf = mbuf;
        frame->data = rte_pktmbuf_mtod(mbuf, uint8_t *);
        frame->length = rte_pktmbuf_pkt_len(mbuf);
        frame->tag = mbuf->vlan_tci;
        /* A direct mbuf that nobody else holds has its frame in its own slot. */
        frame->flags = mbuf->nb_segs == 1 && RTE_MBUF_DIRECT(mbuf) && rte_mbuf_refcnt_read(mbuf) == 1 ? WHOLE : 0;
        if (mbuf->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED)
            frame->flags |= TAG_ASIDE;
    }
    return received;
}

unsigned millrace_send(uint16_t port, uint16_t queue, const struct millrace_frame *frames, uint16_t count)
{
    struct rte_mbuf *mbufs[64];
    count = RTE_MIN(count, 64);
    for (uint16_t at = 0; at < count; at++) {
        struct rte_mbuf *mbuf = frames[at].mbuf;
        mbufs[at] = mbuf;
        mbuf->data_off = (uint16_t)(frames[at].data - (uint8_t *)mbuf->buf_addr);
        mbuf->data_len = (uint16_t)frames[at].length;
        mbuf->pkt_len = frames[at].length;
        mbuf->ol_flags = 0;
        mbuf->packet_type = 0;
        mbuf->tx_offload = 0;
        mbuf->vlan_tci = 0;
    }
    return rte_eth_tx_burst(port, queue, mbufs, count);
}

/* A copy of a frame in an mbuf of the pool. */
int millrace_copy_in(struct rte_mempool *pool, const uint8_t *data, uint32_t length, struct millrace_frame *frame)
{
    struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
    if (mbuf == NULL)
        return -ENOMEM;
    if (length > rte_pktmbuf_tailroom(mbuf)) {
        rte_pktmbuf_free(mbuf);
        return -EMSGSIZE;
    }
    frame->mbuf = mbuf;
    frame->data = rte_pktmbuf_mtod(mbuf, uint8_t *);
    frame->length = length;
    memcpy(frame->data, data, length);
    return 0;
}

/* Copies a frame out of the mbufs that it lies in; 0 when there is no room. */
uint32_t millrace_copy_out(const struct rte_mbuf *mbuf, uint8_t *to, uint32_t room)
{
    uint32_t used = 0;
    for (; mbuf != NULL; mbuf = mbuf->next) {
        if (mbuf->data_len > room - used)
            return 0;
        memcpy(to + used, rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len);
        used += mbuf->data_len;
    }
    return used;
}

void millrace_frame_free(struct rte_mbuf *mbuf) { rte_pktmbuf_free(mbuf); }

/* ---- Devices ---- */

/* As in addresses.rs. */
enum { MAX_ADDRESSES = 64 };

struct millrace_device {
    uint16_t rx_queues;
    uint16_t tx_queues;
    uint16_t mtu;
    int16_t socket;
    char driver[32];
};

int millrace_device_ask(uint16_t port, struct millrace_device *device)
{
    struct rte_eth_dev_info info;
    int result = rte_eth_dev_info_get(port, &info);
    if (result != 0)
        return result;
    memset(device, 0, sizeof(*device));
    device->rx_queues = info.max_rx_queues;
    device->tx_queues = info.max_tx_queues;
    device->socket = (int16_t)rte_eth_dev_socket_id(port);
    if (info.driver_name != NULL)
        strncpy(device->driver, info.driver_name, sizeof(device->driver) - 1);
    return rte_eth_dev_get_mtu(port, &device->mtu);
}

/* Spreads IP packets over the queues by a rule, for a device that does so only on request. 1 if it does. */
static int spread_by_rule(uint16_t port, uint16_t pairs)
{
    uint16_t queues[RTE_MAX_QUEUES_PER_PORT];
    struct rte_flow_action_rss spread = { .types = RTE_ETH_RSS_IP, .queue_num = pairs, .queue = queues };
    const struct rte_flow_action actions[] = {
        { .type = RTE_FLOW_ACTION_TYPE_RSS, .conf = &spread },
        { .type = RTE_FLOW_ACTION_TYPE_END },
    };
    const enum rte_flow_item_type versions[] = { RTE_FLOW_ITEM_TYPE_IPV4, RTE_FLOW_ITEM_TYPE_IPV6 };
    const struct rte_flow_attr attributes = { .ingress = 1 };
    struct rte_flow_error error;
    int spreads = 0;

    for (uint16_t at = 0; at < pairs; at++)
        queues[at] = at;
    for (unsigned at = 0; at < RTE_DIM(versions); at++) {
        const struct rte_flow_item pattern[] = {
            { .type = RTE_FLOW_ITEM_TYPE_ETH },
            { .type = versions[at] },
            { .type = RTE_FLOW_ITEM_TYPE_END },
        };
        if (rte_flow_validate(port, &attributes, pattern, actions, &error) == 0 &&
            rte_flow_create(port, &attributes, pattern, actions, &error) != NULL)
            spreads = 1;
    }
    return spreads;
}

enum { NOT_SPREAD, SPREAD_BY_HASH, SPREAD_BY_RULE };

/* Configures and starts a device; `step` says at what it failed. */
int millrace_device_start(uint16_t port, uint16_t pairs, uint16_t mtu, struct rte_mempool *const *pools, const char **step,
                          int *spread)
{
    struct rte_eth_conf configuration = { .rxmode = { .mtu = mtu } };
    uint16_t receive = DESCRIPTORS, send = DESCRIPTORS;
    struct rte_eth_dev_info info;
    int result;

    *step = "ask";
    *spread = NOT_SPREAD;
    result = rte_eth_dev_info_get(port, &info);
    if (result != 0)
        return result;
    if (pairs > 1) {
        uint64_t hashes = info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP);
        if (hashes != 0) {
            configuration.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
            configuration.rx_adv_conf.rss_conf.rss_hf = hashes;
            *spread = SPREAD_BY_HASH;
        }
    }
    *step = "configure";
    result = rte_eth_dev_configure(port, pairs, pairs, &configuration);
    if (result == 0)
        result = rte_eth_dev_adjust_nb_rx_tx_desc(port, &receive, &send);
    if (result == 0) {
        uint16_t now = 0;
        *step = "set the MTU of";
        if (rte_eth_dev_get_mtu(port, &now) != 0 || now != mtu)
            result = rte_eth_dev_set_mtu(port, mtu);
        /* A device in memory has none. */
        if (result == -ENOTSUP)
            result = 0;
    }
    for (uint16_t queue = 0; result == 0 && queue < pairs; queue++) {
        *step = "make queues of";
        result = rte_eth_rx_queue_setup(port, queue, receive, SOCKET_ID_ANY, NULL, pools[queue]);
        if (result == 0)
            result = rte_eth_tx_queue_setup(port, queue, send, SOCKET_ID_ANY, NULL);
    }
    if (result != 0)
        return result;
    *step = "start";
    result = rte_eth_dev_start(port);
    if (result != 0)
        return result;
    if (pairs > 1 && *spread == NOT_SPREAD && spread_by_rule(port, pairs))
        *spread = SPREAD_BY_RULE;
    return 0;
}

/* Has a started device take frames for these addresses next to its own, or for all of them. A device that cannot filter like that
 * gives all frames, and 0 is the answer. */
int millrace_device_listen(uint16_t port, int all_stations, int all_groups, const uint8_t (*macs)[RTE_ETHER_ADDR_LEN],
                           unsigned count)
{
    struct rte_ether_addr groups[MAX_ADDRESSES], address;
    unsigned group_count = 0;
    int result = 0;

    if (count > MAX_ADDRESSES)
        return -EINVAL;
    for (unsigned at = 0; at < count && result == 0; at++) {
        memcpy(address.addr_bytes, macs[at], RTE_ETHER_ADDR_LEN);
        if (rte_is_multicast_ether_addr(&address))
            groups[group_count++] = address;
        else
            result = rte_eth_dev_mac_addr_add(port, &address, 0);
    }
    if (result == 0 && group_count != 0 && !all_groups)
        result = rte_eth_dev_set_mc_addr_list(port, groups, group_count);
    if (result == 0 && !all_stations)
        result = rte_eth_promiscuous_disable(port);
    /* Where nothing but the frames of the port comes in there is nothing to switch on. */
    if (result != 0 || all_stations)
        (void)rte_eth_promiscuous_enable(port);
    if (result != 0 || all_stations || all_groups)
        (void)rte_eth_allmulticast_enable(port);
    return result == 0;
}

int millrace_device_mac(uint16_t port, uint8_t mac[RTE_ETHER_ADDR_LEN])
{
    struct rte_ether_addr address;
    int result = rte_eth_macaddr_get(port, &address);
    if (result == 0)
        memcpy(mac, address.addr_bytes, RTE_ETHER_ADDR_LEN);
    return result;
}

/* Stops a device, frees what waits in it and takes it away. */
void millrace_device_close(uint16_t port, uint16_t pairs)
{
    struct rte_eth_dev_info info;
    struct rte_mbuf *mbufs[64];

    for (uint16_t queue = 0; queue < pairs; queue++) {
        /* A device that has frames without end is not emptied. */
        for (unsigned burst = 0; burst < 1024; burst++) {
            uint16_t count = rte_eth_rx_burst(port, queue, mbufs, RTE_DIM(mbufs));
            if (count == 0)
                break;
            rte_pktmbuf_free_bulk(mbufs, count);
        }
    }
    if (pairs != 0)
        (void)rte_eth_dev_stop(port);
    if (rte_eth_dev_info_get(port, &info) != 0)
        return;
    (void)rte_eth_dev_close(port);
    if (info.device != NULL)
        (void)rte_dev_remove(info.device);
}

/* Frames that were missed, that were wrong, and for which there was no mbuf. */
int millrace_device_lost(uint16_t port, uint64_t lost[3])
{
    struct rte_eth_stats stats;
    int result = rte_eth_stats_get(port, &stats);
    if (result == 0) {
        lost[0] = stats.imissed;
        lost[1] = stats.ierrors;
        lost[2] = stats.rx_nombuf;
    }
    return result;
}

int millrace_device_is_up(uint16_t port)
{
    struct rte_eth_link link;
    if (rte_eth_link_get_nowait(port, &link) != 0)
        return 1;
    return link.link_status != RTE_ETH_LINK_DOWN;
}
