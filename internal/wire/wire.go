// Package wire is ndbridge's protocol: the one place where core's types and the messages of
// ndbridge.v1 are turned into each other, where errors keep their identity across the process
// boundary, and where descriptors find the request that they answer.
//
// [Client] is a contract.Producer over a gRPC connection and a [Side]; [Server] serves any
// contract.Producer to it. What the other side sent is checked here completely: a value that comes out
// of this package is a valid one, and everything else is an error that wraps core.ErrProtocol.
package wire

const (
	// ProtocolVersion is the version of the protocol in the handshake. It changes with the protobuf
	// package: 1 is ndbridge.v1.
	ProtocolVersion = 1

	// CookieKey is the environment variable that a host sets to [CookieValue], for a plugin to know that a host has
	// started it and no user.
	CookieKey = "NDBRIDGE_PLUGIN"
	// CookieValue is what the variable says.
	CookieValue = "6a0f1d0e-4d5f-ndbridge-9b1c7a42"
)
