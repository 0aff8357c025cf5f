/*
 * A plugin of qemu that counts the instructions which a program executes, and says `Collected : N` at its end, as callgrind does.
 *
 * It declares the part of qemu's plugin interface (version 1, docs/devel/tcg-plugins of qemu) that it uses, since Debian's
 * packages of qemu 7.2 have no header of it. qemu adds the length of each translated block where it executes the block; with several
 * threads some additions may be lost, so what is counted has one thread.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct qemu_plugin_tb;
enum qemu_plugin_op { ADD_U64 };

extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*translated)(uint64_t id, struct qemu_plugin_tb *tb));
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, enum qemu_plugin_op op, void *at, uint64_t value);
extern void qemu_plugin_register_atexit_cb(uint64_t id, void (*ends)(uint64_t id, void *data), void *data);

int qemu_plugin_version = 1;
static uint64_t executed;

static void translated(uint64_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(tb, ADD_U64, &executed, qemu_plugin_tb_n_insns(tb));
}

static void ends(uint64_t id, void *data)
{
    (void)id, (void)data;
    fprintf(stderr, "Collected : %llu\n", (unsigned long long)executed);
}

int qemu_plugin_install(uint64_t id, const void *info, int count, char **arguments)
{
    (void)info, (void)count, (void)arguments;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ends, NULL);
    return 0;
}
