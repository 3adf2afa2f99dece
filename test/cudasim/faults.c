/* Faults on demand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { USUAL_VERSION = 12080 };

struct faults faults = {.version = USUAL_VERSION};

static bool set_word(struct faults *f, const char *word, const char *value) {
	int number = value ? atoi(value) : 0;
	if (!strcmp(word, "oom"))
		f->oom_after = number > 0 ? (unsigned)number : 1;
	else if (!strcmp(word, "lost"))
		f->lost = number ? (CUresult)number : CUDA_ERROR_LAUNCH_FAILED;
	else if (!strcmp(word, "version"))
		f->version = number;
	else if (!strcmp(word, "noexport"))
		f->no_export = true;
	else if (!strcmp(word, "nopeer"))
		f->no_peer = true;
	else if (!strcmp(word, "noipc"))
		f->no_ipc = true;
	else if (!strcmp(word, "nowords"))
		f->no_words = true;
	else if (!strcmp(word, "noregister"))
		f->no_register = true;
	else if (!strcmp(word, "norecord"))
		f->no_record = true;
	else
		return false;
	return true;
}

static int parse(const char *words) {
	char *copy = must(strdup(words)), *rest = copy;
	struct faults f = {.version = USUAL_VERSION};
	int result = 0;
	for (char *word; (word = strsep(&rest, ", ")) && result == 0;) {
		char *value = strchr(word, '=');
		if (value)
			*value++ = 0;
		if (*word && !set_word(&f, word, value))
			result = -1;
	}
	free(copy);
	if (result == 0)
		faults = f;
	return result;
}

void faults_start(void) {
	const char *words = getenv("CUDASIM_FAULTS");
	if (words && parse(words) != 0) {
		fprintf(stderr, "cudasim: CUDASIM_FAULTS=%s: a word is not known; README.md lists them\n", words);
		abort();
	}
}

EXPORTED int cudasim_fault(const char *words) {
	lock();
	int result = parse(words);
	for (struct context *c = contexts_all(); c && faults.lost; c = c->next)
		context_fail(c, faults.lost);
	pthread_cond_broadcast(&sim_changed);
	unlock();
	return result;
}

CUresult allocation_fault(void) {
	if (faults.oom_after && --faults.oom_after == 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}
