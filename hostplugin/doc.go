// Package hostplugin is what a host imports: it starts programs, or attaches to those that run, each with a plugin inside that knows
// its arrays, and gives views of those arrays in the host's own address space.
//
//	host, err := hostplugin.Open(ctx, "ndbridge.hcl")
//	...
//	defer host.Close()
//	camera, err := host.Start(ctx, "camera")
//	...
//	frame, err := camera.View(ctx, "frame")
//	...
//	defer frame.Close()
//	pixels, err := core.Slice[uint8](frame) // the pages that the program wrote
//
// A name that is looked at again and again has a [Source]. Its Refresh asks whether the name still leads to a
// view's memory, and gives another view only if it does not. For what the program publishes, Latest gives the
// newest version, and Next waits for one. A [Group] does the same for several names at once, and [Session.Refresh] for such as come and go.
//
// [Host.Attach] comes to a program that runs already, instead of starting one.
//
// # Lifetimes
//
// A [Host] owns its sessions, and a [Session] owns its views: closing one closes what it owns. Close
// is idempotent everywhere, and safe beside any other call. What the garbage collector finds
// forgotten is not unmapped, because a slice may still alias it; a view that was never closed is
// reported to core.ObserveLeaks.
//
// A view outlives its program: when the program dies, its arrays stay readable as they were. A
// session whose program is gone says so by [Session.Done], and answers with errors that wrap
// core.ErrUnavailable.
//
// A program that was started does not outlive its host, nor its session: it gets a moment to end by itself, and is
// killed, with all of its process group, if it does not. A program that [Host.Attach] has come to goes on.
//
// # Trust
//
// A program can hurt itself only. Everything that it says about its memory is checked before that is
// touched, and memory is mapped for reading unless a view asks for more. The one thing that cannot be
// checked is a file that some other process cuts short while it is mapped (route
// contract.RouteMappedFile): reading it then raises SIGBUS, as any mapping of that file would.
package hostplugin
