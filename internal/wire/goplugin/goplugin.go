// Package goplugin is the protocol as go-plugin's client knows it: what a host gives go-plugin to get a [wire.Client]. A plugin does
// not contain go-plugin, which would be a third of it; [wire.Serve] speaks to go-plugin's client.
package goplugin

import (
	"context"
	"errors"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/ndbridge/ndbridge/internal/wire"
)

// Name is the name under which go-plugin dispenses the producer.
const Name = "producer"

// Handshake is what host and plugin must agree on before they talk.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{
		ProtocolVersion:  wire.ProtocolVersion,
		MagicCookieKey:   wire.CookieKey,
		MagicCookieValue: wire.CookieValue,
	}
}

// Plugin is the producer as go-plugin's client knows it: Dispense gives a *[wire.Client].
type Plugin struct {
	plugin.NetRPCUnsupportedPlugin

	Side    *wire.Side
	Options wire.ClientOptions
}

var _ plugin.GRPCPlugin = (*Plugin)(nil)

// GRPCServer implements plugin.GRPCPlugin. It fails: this is the host's side.
func (p *Plugin) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("go-plugin serves no plugin here; wire.Serve does")
}

// GRPCClient implements plugin.GRPCPlugin.
func (p *Plugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, cc *grpc.ClientConn) (any, error) {
	return wire.NewClient(cc, p.Side, p.Options), nil
}
