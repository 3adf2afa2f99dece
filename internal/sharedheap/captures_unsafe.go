package sharedheap

/*
#define _GNU_SOURCE
#include <dlfcn.h>

struct ndheap_captures {
	int (*hold)(void);
	void (*let)(void);
};

static struct ndheap_captures ndheap_find_captures(void) {
	struct ndheap_captures c = {
		(int (*)(void))dlsym(RTLD_DEFAULT, "ndheap_hold_captures"),
		(void (*)(void))dlsym(RTLD_DEFAULT, "ndheap_let_captures"),
	};
	return c;
}
static int ndheap_call_hold(struct ndheap_captures c) { return c.hold(); }
static void ndheap_call_let(struct ndheap_captures c) { c.let(); }
*/
import "C"

// Captures knows of the captures of CUDA graphs in this process.
type Captures struct{ call C.struct_ndheap_captures }

// FindCaptures reports false if the library was not preloaded into this process. Then nothing is known of captures.
func FindCaptures() (*Captures, bool) {
	c := &Captures{C.ndheap_find_captures()}
	return c, c.call.hold != nil && c.call.let != nil
}

// Hold holds new captures off until Let is called, which must be soon. It reports false, and holds nothing, if one is
// under way.
func (c *Captures) Hold() bool { return C.ndheap_call_hold(c.call) == 0 }

// Let ends what Hold began.
func (c *Captures) Let() { C.ndheap_call_let(c.call) }
