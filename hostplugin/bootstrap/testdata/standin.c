// Stands in for the Go half of a plugin: tells on the side socket what it was asked to do.
#define _GNU_SOURCE
#include "lifecycle.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int side;

static void tell(const char *stage, int number, const char *text) {
	char message[4096];
	int n = snprintf(message, sizeof message, "{\"stage\":\"%s\",\"number\":%d,\"text\":\"%s\"}", stage, number, text);
	if (write(side, message, (size_t)n) != n) return; // the host may be gone
}

uintptr_t ndGoVersion(void) {
	uintptr_t (*new_str)(const char *) = (uintptr_t (*)(const char *))dlsym(RTLD_DEFAULT, "PyUnicode_FromString");
	return new_str("1.2.3");
}

int ndGoStart(int handshake, int status) {
	side = status;
	const char *cookie = getenv("NDBRIDGE_PLUGIN");
	tell("start", handshake, cookie ? cookie : "");
	if (getenv("STANDIN_NEVER_OPENS")) return 0;
	nd_opened();
	return 0;
}

int ndGoWake(void) { return 0; }
int ndGoOpen(int status) { return status < 0; }
int ndGoAttach(int side, int stream) { return side < 0 || stream < 0; }

int ndGoPublish(uintptr_t name, uintptr_t array) {
	(void)name;
	tell("publish", array != 0, "");
	return 0;
}

int ndGoPublishAll(uintptr_t arrays) { return ndGoPublish(arrays, arrays); }

int ndGoUnpublish(uintptr_t name) {
	(void)name;
	tell("unpublish", 0, "");
	return 0;
}

int ndGoAfterReads(uintptr_t array, uintptr_t stream) {
	(void)array;
	(void)stream;
	return 0;
}

uintptr_t ndGoHostFunctions(void) { return 0; }

uintptr_t ndGoCallHost(uintptr_t name, uintptr_t args, uintptr_t kw) {
	(void)name, (void)args, (void)kw;
	return 0;
}

int ndGoServe(void) {
	tell("serve", 0, "");
	return 0;
}

int ndGoServeCall(void) { return 0; }
void ndGoServeEnd(int over) { tell("served", over, ""); }

void ndGoFailed(uintptr_t exception) { tell("failed", exception != 0, ""); }
void ndGoFinished(int status, char *message) { tell("finished", status, message); }

void ndGoClose(void) {
	static int closed;
	// The host may be gone by now, so this goes to standard error.
	if (getenv("STANDIN_SAYS_CLOSE")) fprintf(stderr, "closed\n");
	if (getenv("STANDIN_INTERRUPTS_CLOSE") && !closed) kill(getpid(), SIGINT);
	closed = 1;
}
