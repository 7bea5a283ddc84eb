/* The interpreter that the first lines of Slurm's commands name: has a zygote run the command, if
 * the cluster that SLURM_CONF names has one (`understudy up --zygote`), else Python.
 *
 * Place: compiled by `python -m understudy.tool.cluster.starters`, with -DPYTHON="PATH". It knows
 * no command. Whatever is not as usual (a standard stream that is closed, no answer, a refusal of
 * the zygote) leads to Python, which is always right, only slower. What it sends is read in
 * request.py; beside it go the open descriptors and the current folder. The answer is two bytes,
 * ENDED and the exit code, or else a refusal.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST_BYTES = 128 * 1024, MOST_DESCRIPTORS = 1024, MOST_PASSED = 60 };
enum { ENDED = 'e' }; /* else: refused */

extern char **environ;
static char message[MOST_BYTES];
static size_t length;
static int is_full;

static void add(const char *text) {
    size_t size = strlen(text) + 1;
    if (size > sizeof message - length) {
        is_full = 1;
        return;
    }
    memcpy(message + length, text, size);
    length += size;
}

static void add_number(unsigned long number, const char *format) {
    char text[32];
    snprintf(text, sizeof text, format, number);
    add(text);
}

/* Root folder, namespaces and groups, as `facts` of request.py writes them; 0: they cannot be had. */
static int add_facts(void) {
    static const char *const places[] = {"/", "/proc/self/ns/mnt", "/proc/self/ns/net",
        "/proc/self/ns/pid", "/proc/self/ns/user", "/proc/self/ns/uts"};
    static char text[16 * 1024];
    static gid_t groups[1024];
    size_t at = 0;
    struct stat found;
    for (size_t each = 0; each < sizeof places / sizeof *places; each++) {
        if (stat(places[each], &found))
            return 0;
        at += (size_t)snprintf(text + at, sizeof text - at, "%lu:%lu ",
            (unsigned long)found.st_dev, (unsigned long)found.st_ino);
    }
    int count = getgroups(sizeof groups / sizeof *groups, groups);
    if (count < 0)
        return 0;
    for (int each = 0; each < count; each++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%u ", groups[each]);
    add(text);
    return 1;
}

/* The numbers of all open descriptors but `own` go to `passed`; how many, 0 if they cannot be. */
static int find_descriptors(int *passed, int own) {
    static struct pollfd each[MOST_DESCRIPTORS];
    int count = 0;
    for (int number = 0; number < MOST_DESCRIPTORS; number++)
        each[number].fd = number;
    if (poll(each, MOST_DESCRIPTORS, 0) < 0)
        return 0;
    for (int number = 0; number < MOST_DESCRIPTORS; number++) {
        if (number == own)
            continue;
        if (each[number].revents & POLLNVAL) {
            if (number <= STDERR_FILENO)
                return 0;
        } else if (count < MOST_PASSED) {
            passed[count++] = number;
        } else {
            return 0;
        }
    }
    return count;
}

/* Connected to the zygote beside SLURM_CONF, which this user runs; -1: there is none. */
static int reach_zygote(void) {
    const char *conf = getenv("SLURM_CONF"), *end = conf ? strrchr(conf, '/') : NULL;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!end || (size_t)(end - conf) + sizeof "/zygote.sock" > sizeof address.sun_path)
        return -1;
    memcpy(address.sun_path, conf, (size_t)(end - conf));
    strcpy(address.sun_path + (end - conf), "/zygote.sock");
    int zygote = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct ucred other;
    socklen_t size = sizeof other;
    if (zygote >= 0 && !connect(zygote, (struct sockaddr *)&address, sizeof address)
        && !getsockopt(zygote, SOL_SOCKET, SO_PEERCRED, &other, &size)
        && other.uid == geteuid() && other.gid == getegid())
        return zygote;
    if (zygote >= 0)
        close(zygote);
    return -1;
}

/* Send the command line, and of the descriptors `passed` so many; whether it is on its way. */
static int ask(int zygote, int count, char **words, int *passed, int descriptors) {
    mode_t mask = umask(0);
    umask(mask);
    int folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    add("1");
    add(PYTHON);
    if (folder < 0 || !add_facts())
        return 0;
    add_number(mask, "%lo");
    add_number((unsigned long)descriptors, "%lu");
    for (int each = 0; each < descriptors; each++)
        add_number((unsigned long)passed[each], "%lu");
    add_number((unsigned long)count, "%lu");
    for (int each = 0; each < count; each++)
        add(words[each]);
    for (char **each = environ; *each; each++)
        add(*each);
    passed[descriptors] = folder;
    size_t size = sizeof *passed * (size_t)(descriptors + 1);
    union {
        char bytes[CMSG_SPACE(sizeof(int) * (MOST_PASSED + 1))];
        struct cmsghdr aligned;
    } control = {{0}};
    struct iovec part = {message, length};
    struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes,
        .msg_controllen = CMSG_SPACE(size)};
    struct cmsghdr *first = CMSG_FIRSTHDR(&head);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(first), passed, size);
    int is_sent = !is_full && sendmsg(zygote, &head, MSG_NOSIGNAL) == (ssize_t)length;
    close(folder);
    return is_sent;
}

/* Where nobody reads any more what the command writes, SIGPIPE has ended it, and ends this. */
static void end_as_writer(void) {
    struct pollfd each[] = {{.fd = STDOUT_FILENO}, {.fd = STDERR_FILENO}};
    if (poll(each, 2, 0) > 0 && (each[0].revents | each[1].revents) & (POLLERR | POLLHUP)) {
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }
}

/* Have the zygote run the command, and end as it ends; return if it does not. */
static void run_by_zygote(int count, char **words) {
    int passed[MOST_PASSED + 1];
    unsigned char answer[2];
    ssize_t size = -1;
    if (geteuid() != getuid() || getegid() != getgid())
        return;
    int zygote = reach_zygote(); /* first: mostly there is none */
    if (zygote < 0)
        return;
    int descriptors = find_descriptors(passed, zygote);
    if (!descriptors || !ask(zygote, count, words, passed, descriptors)) {
        close(zygote);
        return;
    }
    signal(SIGINT, SIG_DFL); /* as every command does */
    do
        size = recv(zygote, answer, sizeof answer, 0);
    while (size < 0 && errno == EINTR);
    close(zygote);
    if (size == 0) { /* it may have done half of what it should: not again */
        end_as_writer();
        fprintf(stderr, "%s: error: the zygote has been lost\n", words[0]);
        _exit(1);
    }
    if (size == sizeof answer && answer[0] == ENDED)
        _exit(answer[1]);
}

int main(int count, char **words) {
    if (count < 2)
        return 1;
    run_by_zygote(count - 1, words + 1);
    char **line = calloc((size_t)count + 2, sizeof *line);
    if (!line)
        return 1;
    line[0] = PYTHON;
    line[1] = "-SP";
    memcpy(line + 2, words + 1, (size_t)(count - 1) * sizeof *line);
    execv(PYTHON, line);
    fprintf(stderr, "%s: %s\n", PYTHON, strerror(errno));
    return 126;
}
