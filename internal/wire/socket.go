package wire

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/ndbridge/ndbridge/internal/fdpass"
)

const (
	// filePrefix begins the name of go-plugin's socket, and of the file that it makes to find that.
	filePrefix = "plugin"
	// abandonedAfter is the age at which a directory that needs to exist for a moment is nobody's.
	abandonedAfter = time.Minute
)

// go-plugin's server listens on a Unix socket, which needs a path, and a path outlives a process that is killed. So the
// path exists only for the moment in which go-plugin makes the socket: the plugin makes the directory just before, and
// then sends the host a descriptor of the socket and removes both. The host connects through its descriptor.

// NewSocketDir names a directory in parent that does not exist. A host sets
// [plugin.EnvUnixSocketDir] to it in the plugin's environment.
func NewSocketDir(parent string) string { return filepath.Join(parent, "ndbridge-"+rand.Text()) }

// socketDirs matches the names that NewDir gives.
func socketDirs() *regexp.Regexp { return regexp.MustCompile(`^ndbridge-[A-Z2-7]{26}$`) }

// Serve is plugin.Serve for a plugin with a side socket. It sets the config's TLSProvider. An error
// says that the plugin was not served at all.
func Serve(side *fdpass.Conn, config *plugin.ServeConfig) error {
	dir := os.Getenv(plugin.EnvUnixSocketDir)
	if dir == "" {
		return fmt.Errorf("the host has not set %s", plugin.EnvUnixSocketDir)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	defer RemoveSocketDir(dir) // unless that was done: go-plugin may fail before it listens
	// It has no configuration to give. It is what go-plugin calls as soon as the socket is there.
	config.TLSProvider = func() (*tls.Config, error) {
		defer RemoveSocketDir(dir)
		return nil, sayListening(side, dir)
	}
	plugin.Serve(config)
	return nil
}

// sayListening sends the host the socket in dir.
func sayListening(side *fdpass.Conn, dir string) error {
	paths := socketFiles(dir)
	if len(paths) != 1 {
		return fmt.Errorf("%s has %d sockets of go-plugin, expected 1", dir, len(paths))
	}
	f, err := openSocket(paths[0])
	if err != nil {
		return err
	}
	return errors.Join(side.Send([]byte(ListeningMessage), f), f.Close())
}

// RemoveSocketDir removes a directory of NewDir's, if it is there and has nothing in it but what
// go-plugin makes. The plugin does; a host does for a plugin that was killed in that moment.
func RemoveSocketDir(dir string) {
	for _, path := range socketFiles(dir) {
		_ = os.Remove(path)
	}
	_ = os.Remove(dir)
}

// socketFiles lists what go-plugin has made in dir.
func socketFiles(dir string) []string {
	entries, _ := os.ReadDir(dir) // fails for a directory that is gone
	var paths []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filePrefix) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// SweepSocketDirs removes the directories that plugins have left in parent because they were killed
// in that moment, with their hosts.
func SweepSocketDirs(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return // a host that cannot read it can still start programs
	}
	ours := socketDirs()
	for _, e := range entries {
		if !e.IsDir() || !ours.MatchString(e.Name()) {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > abandonedAfter {
			RemoveSocketDir(filepath.Join(parent, e.Name()))
		}
	}
}

// Dialer makes a gRPC connection, whatever its target is called, one to the socket at which the plugin
// says that it listens. There is one connection: a second attempt fails.
func Dialer(s *Side) grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		f, err := s.Listening(ctx)
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // nothing can be lost
		return new(net.Dialer).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	})
}
