// Package contract is what the two sides of a connection promise each other: the side that has arrays and the side
// that looks at them. Authors of plugins and of adapters read it; authors of hosts meet little of it.
//
// A [Producer] lists arrays and lends them. A [Lease] promises that the memory of one array stays valid until it
// is released. It says how the memory is reached (a [Handle], such as a [Segment]), how it got where it is (a
// route, and a reason if it was copied), and what must have happened before anybody touches it (a [Fence]). The
// client through which a host reaches a producer in another process implements Producer too, and coretest
// checks that an implementation keeps the contract.
//
// A [Quirk] is one deviation of one framework from what the export protocols say, in a range of versions
// (see [Version]).
//
// Optional abilities are small interfaces that are found by assertion: [Configurer], [Refresher] and [Waiter].
package contract
