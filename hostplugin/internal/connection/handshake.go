package connection

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/hashicorp/go-plugin"

	"github.com/ndbridge/ndbridge/internal/wire"
)

// handshake is the host's side of how go-plugin's two sides begin: what the plugin finds in its environment, and what the
// line says that it prints when it listens. Its certificate is for this one handshake.
//
// go-plugin's client can do this as well. But it makes a directory for each program that it starts with a runner, and a
// host that is killed leaves that behind. So the host attaches go-plugin's client to a plugin that it has started itself.
type handshake struct {
	certificate tls.Certificate
}

// newHandshake makes the host's side.
func newHandshake() (*handshake, error) {
	certificate, err := wire.NewCertificate(x509.ExtKeyUsageClientAuth)
	if err != nil {
		return nil, err
	}
	return &handshake{certificate}, nil
}

// environment gives what the plugin needs: go-plugin's variables, with sockets as the directory that it
// makes for its socket.
func (h *handshake) environment(sockets string) []string {
	block := pem.Block{Type: "CERTIFICATE", Bytes: h.certificate.Certificate[0]}
	return []string{
		wire.CookieKey + "=" + wire.CookieValue,
		wire.EnvVersions + "=" + strconv.Itoa(wire.ProtocolVersion),
		wire.EnvCertificate + "=" + string(pem.EncodeToMemory(&block)),
		wire.EnvSocketDir + "=" + sockets,
	}
}

// greeting is what a plugin prints when it listens.
type greeting struct {
	Core, Version     int // versions of go-plugin's protocol and of ours
	network, protocol string
	address           string
	certificate       string
}

// parseGreeting reads the line, and reports whether it is one.
func parseGreeting(text string) (greeting, bool) {
	parts := strings.Split(text, "|")
	if len(parts) < 4 {
		return greeting{}, false
	}
	parts = append(parts, "", "") // what old plugins leave out
	var l greeting
	var errs [2]error
	l.Core, errs[0] = strconv.Atoi(parts[0])
	l.Version, errs[1] = strconv.Atoi(parts[1])
	l.network, l.address, l.protocol, l.certificate = parts[2], parts[3], parts[4], parts[5]
	return l, errors.Join(errs[:]...) == nil
}

// current reports whether the plugin speaks the versions that this host speaks.
func (l greeting) current() bool {
	return l.Core == wire.CoreVersion && l.Version == wire.ProtocolVersion
}

// accept says how go-plugin's client speaks to a plugin that has printed the line. The address is what
// the plugin calls its socket, and is for logs only.
func (h *handshake) accept(l greeting) (address net.Addr, config *tls.Config, err error) {
	switch {
	case l.network != "unix":
		return nil, nil, fmt.Errorf("the plugin listens at %s %q, expected a unix socket", l.network, l.address)
	case l.protocol != string(plugin.ProtocolGRPC):
		return nil, nil, fmt.Errorf("the plugin speaks %q, expected %s", l.protocol, plugin.ProtocolGRPC)
	}
	der, err := base64.RawStdEncoding.DecodeString(l.certificate)
	if err != nil {
		return nil, nil, fmt.Errorf("the plugin's certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("the plugin's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	return &net.UnixAddr{Name: l.address, Net: l.network}, &tls.Config{
		Certificates: []tls.Certificate{h.certificate},
		RootCAs:      roots,
		ServerName:   wire.CertificateName,
		MinVersion:   tls.VersionTLS12,
	}, nil
}
