// Package wire is ndbridge's protocol: the one place where core's types and the messages of
// ndbridge.v1 are turned into each other, where errors keep their identity across the process
// boundary, and where descriptors find the request that they answer.
//
// [Client] is a contract.Producer over a gRPC connection and a [Side]; [Server] serves any
// contract.Producer to it. What the other side sent is checked here completely: a value that comes out
// of this package is a valid one, and everything else is an error that wraps core.ErrProtocol.
package wire

import (
	"context"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

const (
	// ProtocolVersion is the version of the protocol in go-plugin's handshake. It changes with the
	// protobuf package: 1 is ndbridge.v1.
	ProtocolVersion = 1

	// PluginName is the name under which go-plugin dispenses the producer.
	PluginName = "producer"
)

// Handshake is what host and plugin must agree on before they talk.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{
		ProtocolVersion:  ProtocolVersion,
		MagicCookieKey:   "NDBRIDGE_PLUGIN",
		MagicCookieValue: "6a0f1d0e-4d5f-ndbridge-9b1c7a42",
	}
}

// Plugin is the producer as go-plugin knows it. A plugin sets Serve; a host sets Side and Options,
// and Dispense gives it a *[Client].
type Plugin struct {
	plugin.NetRPCUnsupportedPlugin

	Serve   *Server
	Side    *Side
	Options ClientOptions
}

var _ plugin.GRPCPlugin = (*Plugin)(nil)

// GRPCServer implements plugin.GRPCPlugin.
func (p *Plugin) GRPCServer(_ *plugin.GRPCBroker, r *grpc.Server) error {
	p.Serve.Register(r)
	return nil
}

// GRPCClient implements plugin.GRPCPlugin.
func (p *Plugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, cc *grpc.ClientConn) (any, error) {
	return NewClient(cc, p.Side, p.Options), nil
}
