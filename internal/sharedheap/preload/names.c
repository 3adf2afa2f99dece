/* What a Python program is called by hosts: after its script or its module, and its rank among the processes of a launcher. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heap.h"

enum { LINE = 4096 };

static const char *base(const char *path) {
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* The word behind one in a list of words that end with 0, or NULL. */
static char *after(char *word, const char *end) {
	word += strlen(word) + 1;
	return word < end ? word : NULL;
}

/* What a command of -c is called: multiprocessing starts its processes by one. */
static const char *of_command(char *command) {
	static const char multiprocessing[] = "from multiprocessing.";
	command = strstr(command, multiprocessing);
	if (!command)
		return "";
	command += strlen(multiprocessing);
	command[strcspn(command, " ")] = '\0';
	return command;
}

/* Finds the script or the module in the arguments of Python. */
static const char *find_target(char *line, const char *end) {
	if (!begins(base(line), "python"))
		return base(line); /* a program that has Python in it */
	for (char *word = after(line, end); word && *word; word = after(word, end)) {
		if (*word != '-' || !word[1])
			return word[1] ? base(word) : "";
		if (strcmp(word, "--check-hash-based-pycs") == 0)
			word = after(word, end);
		if (!word)
			break;
		for (char *option = word + 1; *option && word[1] != '-'; option++) {
			char *value = option[1] ? option + 1 : after(word, end);
			if (!value)
				return "";
			if (*option == 'c')
				return of_command(value);
			if (*option == 'm')
				return value;
			if (*option != 'W' && *option != 'X')
				continue;
			word = option[1] ? word : value;
			break;
		}
	}
	return "";
}

static bool allowed(char c) {
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

static size_t without(const char *name, size_t length, const char *end) {
	size_t tail = strlen(end);
	return length > tail && strncmp(name + length - tail, end, tail) == 0 ? length - tail : length;
}

static const char *find_rank(void) {
	static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *rank = getenv(names[i]);
		if (rank && *rank && strspn(rank, "0123456789") == strlen(rank) && strlen(rank) <= 8)
			return rank;
	}
	return NULL;
}

static void add_rank(char *name, size_t size) {
	const char *rank = find_rank();
	if (rank && strlen(name) + 1 + strlen(rank) < size)
		strcat(strcat(name, "."), rank);
}

static void find_own(char *name, size_t size) {
	char line[LINE + 1] = {0};
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, line, LINE);
	if (fd >= 0)
		close(fd);
	const char *target = find_target(line, line + (length > 0 ? length : 0));
	target += strspn(target, ".-");
	size_t n = without(target, without(target, strlen(target), ".py"), ".__main__");
	n = n < size ? n : size - 1;
	for (size_t i = 0; i < n; i++)
		name[i] = allowed(target[i]) ? target[i] : '_';
	name[n] = '\0';
	if (!n)
		strcpy(name, "python");
}

void names_find(const char *given, char *name, size_t size) {
	if (given && *given && strlen(given) < size)
		strcpy(name, given);
	else
		find_own(name, size);
	add_rank(name, size);
}
