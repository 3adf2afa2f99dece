/* Core dumps: real ones, of processes that abort. */
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "stress.h"

static const size_t sizes[] = {THRESHOLD, THRESHOLD, THRESHOLD, 300 * KIB, MIB, 7 * MIB};
#define SIZES (sizeof sizes / sizeof *sizes)

/* Whether the kernel writes cores into the folder of the process. */
static bool cores_here(void) {
	char pattern[256] = "|";
	FILE *f = fopen("/proc/sys/kernel/core_pattern", "r");
	if (f && !fgets(pattern, sizeof pattern, f))
		pattern[0] = '|';
	if (f)
		fclose(f);
	return pattern[0] != '|' && pattern[0] != '/';
}

/* Leaves a core in a folder. */
static void dump(const char *folder) {
	const struct rlimit any = {RLIM_INFINITY, RLIM_INFINITY};
	CHECK(chdir(folder) == 0 && setrlimit(RLIMIT_CORE, &any) == 0);
	signal(SIGABRT, SIG_DFL);
	abort();
}

/* Opens the core in a folder, and removes it. */
static FILE *core_in(const char *folder) {
	char path[PATH_MAX];
	FILE *core = NULL;
	DIR *dir = opendir(folder);
	for (struct dirent *e; dir && (e = readdir(dir));) {
		if (strncmp(e->d_name, "core", 4) != 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
		core = fopen(path, "r");
		unlink(path);
	}
	closedir(dir);
	rmdir(folder);
	return core;
}

/* Whether a core has what was filled in. */
static bool has(FILE *core, const char *p, size_t size, uint32_t seed) {
	Elf64_Ehdr header;
	Elf64_Phdr part;
	char *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t from = (uintptr_t)p, to = from + size, at = from;
	CHECK(copy != MAP_FAILED && fseek(core, 0, SEEK_SET) == 0 && fread(&header, sizeof header, 1, core) == 1);
	for (int i = 0; i < header.e_phnum; i++) { /* by address */
		CHECK(fseek(core, (long)(header.e_phoff + (size_t)i * sizeof part), SEEK_SET) == 0 && fread(&part, sizeof part, 1, core) == 1);
		if (part.p_type != PT_LOAD || at < part.p_vaddr || at >= part.p_vaddr + part.p_filesz)
			continue;
		uintptr_t end = part.p_vaddr + part.p_filesz < to ? part.p_vaddr + part.p_filesz : to;
		CHECK(fseek(core, (long)(part.p_offset + at - part.p_vaddr), SEEK_SET) == 0 && fread(copy + (at - from), end - at, 1, core) == 1);
		at = end;
	}
	bool there = at == to && filled(copy, size, seed);
	munmap(copy, size);
	return there;
}

/* Makes arrays, one with a part that cannot be written to, forks, and leaves a core of both sides, of which none has written to any since. */
static void fork_and_dump(char *p[SIZES], char *const folders[2]) {
	for (size_t i = 0; i < SIZES; i++) {
		fill(p[i] = opaque(malloc(sizes[i])), sizes[i], (uint32_t)i);
		heap.promote(p[i]); /* if it is the libc's */
	}
	CHECK(mprotect((char *)(((uintptr_t)p[4] + 4095) & ~4095ul) + 64 * KIB, 64 * KIB, PROT_READ) == 0);
	int pid = split();
	if (pid == 0)
		dump(folders[1]);
	waitpid(pid, NULL, 0);
	dump(folders[0]);
}

/* After a fork both sides have all of their memory in a core dump, whether they have written to it since or not. */
void test_fork_dumped(void) {
	char folders[2][32] = {"/tmp/ndheap-core-XXXXXX", "/tmp/ndheap-core-XXXXXX"};
	if (!cores_here()) {
		printf("this machine puts core dumps elsewhere\n");
		return;
	}
	char **p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED && mkdtemp(folders[0]) && mkdtemp(folders[1]));
	int pid = split();
	if (pid == 0)
		fork_and_dump(p, (char *const[]){folders[0], folders[1]});
	waitpid(pid, NULL, 0);
	for (int side = 0; side < 2; side++) {
		FILE *core = core_in(folders[side]);
		CHECK(core, "no core dump of the %s", side ? "child" : "parent");
		for (size_t i = 0; i < SIZES; i++)
			CHECK(has(core, p[i], sizes[i], (uint32_t)i), "%zu bytes, array %zu, of the %s", sizes[i], i, side ? "child" : "parent");
		fclose(core);
	}
}
