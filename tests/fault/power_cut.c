/* Notes every write, truncation, removal and sync below a folder, in their order, so that a test can cut the power anywhere.
   cc -shared -fPIC -o power_cut.so power_cut.c -ldl; LD_PRELOAD=power_cut.so POWER_DIR=/folder POWER_LOG=/log program
   A record: kind (1 byte), length of the path (4), offset (8), length of the data (8), path, data; native byte order. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int log_file = -1;

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);

static void find_real(void)
{
    if (real_write)
        return;
    real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_write = dlsym(RTLD_NEXT, "write");
}

static int watched(int file, char *path)
{
    const char *folder = getenv("POWER_DIR");
    char link[64];
    find_real();
    if (!folder || !getenv("POWER_LOG"))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length <= 0)
        return 0;
    path[length] = 0;
    return strncmp(path, folder, strlen(folder)) == 0;
}

static void note(char kind, const char *path, uint64_t offset, const void *data, uint64_t length)
{
    uint32_t path_length = strlen(path);
    if (log_file < 0)
        log_file = open(getenv("POWER_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log_file < 0)
        abort();
    size_t size = 21 + path_length + length, done = 0;
    char *record = malloc(size);
    memcpy(record, &kind, 1);
    memcpy(record + 1, &path_length, 4);
    memcpy(record + 5, &offset, 8);
    memcpy(record + 13, &length, 8);
    memcpy(record + 21, path, path_length);
    if (length)
        memcpy(record + 21 + path_length, data, length);
    while (done < size) {
        ssize_t now = real_write(log_file, record + done, size - done);
        if (now <= 0)
            abort();
        done += now;
    }
    free(record);
}

ssize_t write(int file, const void *data, size_t length)
{
    char path[PATH_MAX];
    if (!watched(file, path))
        return real_write(file, data, length);
    pthread_mutex_lock(&turn);
    off_t offset = lseek(file, 0, SEEK_CUR);
    ssize_t done = real_write(file, data, length);
    if (done > 0)
        note('W', path, offset < 0 ? 0 : offset, data, done);
    pthread_mutex_unlock(&turn);
    return done;
}

ssize_t pwrite64(int file, const void *data, size_t length, off_t offset)
{
    char path[PATH_MAX];
    if (!watched(file, path))
        return real_pwrite(file, data, length, offset);
    pthread_mutex_lock(&turn);
    ssize_t done = real_pwrite(file, data, length, offset);
    if (done > 0)
        note('W', path, offset, data, done);
    pthread_mutex_unlock(&turn);
    return done;
}

ssize_t pwrite(int file, const void *data, size_t length, off_t offset) { return pwrite64(file, data, length, offset); }

int ftruncate64(int file, off_t length)
{
    char path[PATH_MAX];
    if (!watched(file, path))
        return real_ftruncate(file, length);
    pthread_mutex_lock(&turn);
    int code = real_ftruncate(file, length);
    if (code == 0)
        note('T', path, length, NULL, 0);
    pthread_mutex_unlock(&turn);
    return code;
}

int ftruncate(int file, off_t length) { return ftruncate64(file, length); }

static int synced(int (*real)(int), int file)
{
    char path[PATH_MAX];
    int here = watched(file, path), code = real(file);
    if (here && code == 0) {
        pthread_mutex_lock(&turn);
        note('S', path, 0, NULL, 0);
        pthread_mutex_unlock(&turn);
    }
    return code;
}

int unlink(const char *path)
{
    static int (*real_unlink)(const char *);
    const char *folder = getenv("POWER_DIR");
    find_real();
    if (!real_unlink)
        real_unlink = dlsym(RTLD_NEXT, "unlink");
    int code = real_unlink(path);
    if (code == 0 && folder && getenv("POWER_LOG") && strncmp(path, folder, strlen(folder)) == 0) {
        pthread_mutex_lock(&turn);
        note('U', path, 0, NULL, 0);
        pthread_mutex_unlock(&turn);
    }
    return code;
}

int fsync(int file) { find_real(); return synced(real_fsync, file); }
int fdatasync(int file) { find_real(); return synced(real_fdatasync, file); }
