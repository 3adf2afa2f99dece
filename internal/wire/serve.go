package wire

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/ndbridge/ndbridge/internal/fdpass"
)

// The names of go-plugin's protocol that both sides use.
const (
	// CoreVersion is the version of go-plugin's own protocol.
	CoreVersion = 1
	// EnvSocketDir is the variable for the directory in which the plugin makes its socket.
	EnvSocketDir = "PLUGIN_UNIX_SOCKET_DIR"
	// EnvVersions is the variable for the versions of the protocol that the host speaks.
	EnvVersions = "PLUGIN_PROTOCOL_VERSIONS"
	// EnvCertificate is the variable for the host's certificate, in PEM.
	EnvCertificate = "PLUGIN_CLIENT_CERT"
	// CertificateName is what certificates are for.
	CertificateName = "localhost"
)

// Serve speaks to go-plugin's client in a host: it listens, says so on handshake, and serves what register registers and what
// go-plugin calls itself. It returns nil when the host shuts it down, or when ctx ends; an error says that nothing was served.
// It reads the environment in which the host has started the plugin.
func Serve(ctx context.Context, side *fdpass.Conn, handshake *os.File, register func(grpc.ServiceRegistrar)) error {
	listener, err := listen(ctx, side, os.Getenv(EnvSocketDir))
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // the server has closed it, or there is none
	certificate, err := NewCertificate(x509.ExtKeyUsageServerAuth)
	if err != nil {
		return err
	}
	hosts := x509.NewCertPool()
	if !hosts.AppendCertsFromPEM([]byte(os.Getenv(EnvCertificate))) {
		return fmt.Errorf("%s holds no certificate of a host", EnvCertificate)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    hosts,
		MinVersion:   tls.VersionTLS13,
	})))
	serveGoPlugin(server)
	register(server)
	defer context.AfterFunc(ctx, server.Stop)()
	_, err = fmt.Fprintf(handshake, "%d|%d|unix|%s|grpc|%s\n", CoreVersion, ProtocolVersion, listener.Addr(),
		base64.RawStdEncoding.EncodeToString(certificate.Certificate[0]))
	if err == nil {
		err = server.Serve(listener)
	}
	if ctx.Err() != nil || errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// NewCertificate makes a certificate for one session, of a host or of a plugin, which signs itself.
func NewCertificate(usage x509.ExtKeyUsage) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	certificate := &x509.Certificate{
		SerialNumber:          big.NewInt(1), // its issuer makes no other
		Subject:               pkix.Name{CommonName: CertificateName},
		DNSNames:              []string{CertificateName},
		NotBefore:             time.Now().Add(-time.Minute),
		NotAfter:              time.Now().AddDate(30, 0, 0), // a session may be long
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{usage},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate, certificate, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// serveGoPlugin serves what go-plugin's client calls itself. Its messages have no fields that matter here. It also looks for
// GRPCBroker, and does without.
func serveGoPlugin(server *grpc.Server) {
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "plugin.GRPCController",
		Methods: []grpc.MethodDesc{{
			MethodName: "Shutdown",
			Handler: func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) {
				server.Stop()
				return &emptypb.Empty{}, nil
			},
		}},
	}, nil)
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "plugin.GRPCStdio",
		Streams: []grpc.StreamDesc{{
			StreamName:    "StreamStdio",
			ServerStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { // the host reads the descriptors
				<-stream.Context().Done()
				return nil
			},
		}},
	}, nil)
}
