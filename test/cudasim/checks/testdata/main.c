/* checks NAME runs one check; checks alone lists them. */
#include "checks.h"

#include <dirent.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

static pid_t peer;

/*
 * The driver finds the races of copies itself, and says so: what check_race provokes is no defect. Of the
 * two sides, the sanitizer may not remember the stack of the earlier one; both are copies.
 */
const char *__tsan_default_suppressions(void) {
	return "race:run_copy\n";
}

CUcontext use_primary(void) {
	CUcontext c;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&c, 0));
	OK(cuCtxSetCurrent(c));
	return c;
}

CUcontext use_primary_slowly(void) {
	setenv("CUDASIM_DELAY_US", "500000", 1);
	return use_primary();
}

CUstream new_stream(void) {
	CUstream s;
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	return s;
}

CUdeviceptr memory_of(uint32_t value) {
	CUdeviceptr p;
	OK(cuMemAlloc(&p, SIZE));
	OK(cuMemsetD32(p, value, COUNT));
	OK(cuCtxSynchronize());
	return p;
}

uint32_t first_word(CUdeviceptr p) {
	static CUstream reader;
	uint32_t word;
	if (!reader)
		reader = new_stream();
	void *pinned;
	OK(cuMemAllocHost(&pinned, sizeof word));
	OK(cuMemcpyDtoHAsync(pinned, p, sizeof word, reader));
	OK(cuStreamSynchronize(reader));
	memcpy(&word, pinned, sizeof word);
	OK(cuMemFreeHost(pinned));
	return word;
}

bool all_words(CUdeviceptr p, uint32_t value) {
	uint32_t words[COUNT];
	OK(cuMemcpyDtoH(words, p, SIZE));
	for (int i = 0; i < COUNT; i++) {
		if (words[i] != value)
			return false;
	}
	return true;
}

int start_peer(void (*other)(int socket)) {
	int ends[2];
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	peer = fork();
	CHECK(peer >= 0);
	if (peer == 0) {
		close(ends[0]);
		other(ends[1]);
		exit(0);
	}
	close(ends[1]);
	return ends[0];
}

int wait_for_peer(void) {
	int status;
	CHECK(waitpid(peer, &status, 0) == peer);
	return status;
}

int kill_peer(void) {
	CHECK(kill(peer, SIGKILL) == 0);
	return wait_for_peer();
}

void end_peer(void) {
	int status = wait_for_peer();
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void tell(int socket, const void *data, size_t size) {
	CHECK(write(socket, data, size) == (ssize_t)size);
}

void hear(int socket, void *data, size_t size) {
	CHECK(read(socket, data, size) == (ssize_t)size);
}

union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr header;
};

void send_descriptor(int socket, int fd) {
	union control control = {0};
	struct iovec one = {"", 1};
	struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = &control,
				 .msg_controllen = sizeof control};
	control.header = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
	CHECK(sendmsg(socket, &message, 0) == 1);
}

int receive_descriptor(int socket) {
	union control control = {0};
	char byte;
	struct iovec one = {&byte, 1};
	struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = &control,
				 .msg_controllen = sizeof control};
	int fd;
	CHECK(recvmsg(socket, &message, 0) == 1 && control.header.cmsg_type == SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(&control.header), sizeof fd);
	return fd;
}

int count_descriptors(void) {
	DIR *folder = opendir("/proc/self/fd");
	int n = 0;
	while (readdir(folder))
		n++;
	closedir(folder);
	return n;
}

#define ENTRY(name) {#name, check_##name},
static const struct {
	const char *name;
	void (*run)(void);
} checks[] = {CHECKS(ENTRY)};

int main(int argc, char **argv) {
	for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
		if (argc < 2) {
			puts(checks[i].name);
		} else if (!strcmp(argv[1], checks[i].name)) {
			checks[i].run();
			return 0;
		}
	}
	return argc < 2 ? 0 : 2;
}
