package connection

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-plugin"

	"github.com/ndbridge/ndbridge/internal/wire"
)

// serverName is what go-plugin's certificates are for.
const serverName = "localhost"

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
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	certificate := &x509.Certificate{
		SerialNumber:          big.NewInt(1), // its issuer makes no other
		Subject:               pkix.Name{CommonName: serverName},
		DNSNames:              []string{serverName},
		NotBefore:             time.Now().Add(-time.Minute),
		NotAfter:              time.Now().AddDate(30, 0, 0), // a session may be long
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate, certificate, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &handshake{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}, nil
}

// environment gives what the plugin needs: go-plugin's variables, with sockets as the directory that it
// makes for its socket.
func (h *handshake) environment(sockets string) []string {
	config := wire.Handshake()
	block := pem.Block{Type: "CERTIFICATE", Bytes: h.certificate.Certificate[0]}
	return []string{
		config.MagicCookieKey + "=" + config.MagicCookieValue,
		"PLUGIN_PROTOCOL_VERSIONS=" + strconv.FormatUint(uint64(config.ProtocolVersion), 10),
		"PLUGIN_CLIENT_CERT=" + string(pem.EncodeToMemory(&block)),
		plugin.EnvUnixSocketDir + "=" + sockets,
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
	return l.Core == plugin.CoreProtocolVersion && l.Version == wire.ProtocolVersion
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
		ServerName:   serverName,
		MinVersion:   tls.VersionTLS12,
	}, nil
}
