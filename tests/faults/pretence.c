/* What a process under test believes of its machine: another time of day, and a file system that has become read-only.
 *
 * Preloaded. The file named by FAULTS_PRETENCE is shared with the test, which changes it at any moment.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

struct pretence {
    volatile int64_t seconds_ahead;
    volatile int64_t read_only; /* every file on the device of the folder below */
};

static const struct pretence honest = {0, 0};
static const struct pretence *pretence = &honest;
static dev_t device;

static int (*real_clock_gettime)(clockid_t, struct timespec *);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite64)(int, const void *, size_t, off64_t);
static int (*real_ftruncate64)(int, off64_t);

__attribute__((constructor)) static void begin(void) {
    real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite64 = dlsym(RTLD_NEXT, "pwrite64");
    real_ftruncate64 = dlsym(RTLD_NEXT, "ftruncate64");
    struct stat folder;
    const char *at = getenv("FAULTS_FOLDER");
    if (at != NULL && stat(at, &folder) == 0)
        device = folder.st_dev;
    const char *path = getenv("FAULTS_PRETENCE");
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    void *shared = mmap(NULL, sizeof honest, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (shared != MAP_FAILED)
        pretence = shared;
}

static int is_refused(int file) {
    struct stat found;
    if (!pretence->read_only || fstat(file, &found) != 0)
        return 0;
    if (!S_ISREG(found.st_mode) || found.st_dev != device)
        return 0;
    errno = EROFS;
    return 1;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = real_clock_gettime(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += pretence->seconds_ahead;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where != NULL)
        *where = now.tv_sec;
    return now.tv_sec;
}

ssize_t write(int file, const void *data, size_t size) {
    return is_refused(file) ? -1 : real_write(file, data, size);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
    return is_refused(file) ? -1 : real_pwrite64(file, data, size, at);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
    return pwrite64(file, data, size, at);
}

int ftruncate64(int file, off64_t size) {
    return is_refused(file) ? -1 : real_ftruncate64(file, size);
}

int ftruncate(int file, off_t size) {
    return ftruncate64(file, size);
}
