// Package bootstrap is the Python code that an interpreter runs first when a host starts a program:
// it reports to the host, loads the plugin, and then runs the user's script or module as the
// interpreter alone would have.
package bootstrap

import (
	_ "embed" // for the source
	"fmt"
	"strconv"
	"strings"
)

//go:embed shared.py
var shared string

//go:embed module.py
var module string

//go:embed start.py
var start string

//go:embed attach.py
var attach string

//go:embed enter.py
var enter string

//go:embed python/ndbridge.py
var standIn string

// AskCode gives a script for an interpreter that runs something else and was asked to run this: it lets in the host that listens at a
// socket. Whatever goes wrong, the program does not notice. A thread does it: on the main thread a handler of the program's might raise its
// exception within the script, where Python drops it, and the program would stand still for as long as the host takes.
func AskCode(socket string) []byte {
	const text = `def attach(path, first, rest):
    try:
        import _signal
        import _socket
        import sys

        _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())  # they are for the program's own threads
        side = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET | _socket.SOCK_CLOEXEC)
        side.settimeout(5)
        side.connect(path)
        module = sys.modules.get("ndbridge")
        if not hasattr(module, "_come"):
            module = type(sys)("ndbridge")
            exec(compile(first, "<ndbridge>", "exec"), module.__dict__)
            module._rest = rest
        module._come(module, side.detach())
    except BaseException:
        pass


try:
    import _thread
    import sys

    # gevent and eventlet put functions in the place of _thread's that make no thread. gevent forgets this one, and eventlet keeps the module.
    sys.modules.get("__original_module__thread", _thread).start_new(attach, (%s, %s, %s))
except BaseException:
    pass
`
	first, rest, _ := strings.Cut(standIn, "\n# The rest is compiled when it is asked for.\n")
	return fmt.Appendf(nil, text, strconv.QuoteToASCII(socket), strconv.QuoteToASCII(first), strconv.QuoteToASCII(rest))
}

// Kind says what a program is.
type Kind string

// The kinds of program.
const (
	Script Kind = "script" // a file, a directory or a zip file with a __main__.py
	Module Kind = "module" // a module's name, as for python -m
)

// Args gives the arguments with which the user's interpreter is started: it loads the plugin's
// library at that path, then runs the target with args.
//
// The process is expected to have, besides its standard input and error: as descriptor 1 go-plugin's
// handshake pipe, as 3 the side socket (SOCK_SEQPACKET), on which [Code] is the first message, and as 4
// the pipe that becomes its standard output.
func Args(plugin string, kind Kind, target string, args ...string) []string {
	return append([]string{"-c", loader(), plugin, string(kind), target}, args...)
}

// Code gives the program text that the interpreter reads from the side socket: it is too long for a list
// of processes.
func Code() []byte { return []byte(shared + "\n\n" + module + "\n\n" + start) }

// AttachCode gives the program text that whoever has accepted a host in a running program reads as the first message from the side socket.
// With it come two descriptors: the plugin's file, which lies at that path for the host, and a connection for gRPC.
func AttachCode(plugin string) []byte {
	return fmt.Appendf(nil, "%s\n\n%s\n\nENTER = %s\nMODULE = %s\nattach(%s)\n",
		shared, attach, strconv.QuoteToASCII(enter), strconv.QuoteToASCII(module), strconv.QuoteToASCII(plugin))
}

// loader gives the program text for python -c. It leaves no name behind in __main__.
func loader() string {
	const text = `import os, sys
try:
    code = os.read(3, 65536)
except OSError as error:
    sys.exit("ndbridge: this code is run by a host, not by hand (%s)" % error)
exec(compile(code, "<ndbridge>", "exec"))
`
	return "exec(" + strconv.QuoteToASCII(text) + `, {"__name__": "ndbridge"})`
}
