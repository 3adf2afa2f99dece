package wire

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/ndbridge/ndbridge/internal/fdpass"
)

const (
	// socketFile is the name of the socket, and begins that of plugins of earlier releases.
	socketFile = "plugin"
	// abandonedAfter is the age at which a directory that needs to exist for a moment is nobody's.
	abandonedAfter = time.Minute
)

// A Unix socket needs a path, and a path outlives a process that is killed. So the path exists only for a moment: the
// plugin makes the directory and the socket, sends the host a descriptor of the socket and removes both. The host
// connects through its descriptor.

// NewSocketDir names a directory in parent that does not exist. A host sets [EnvSocketDir] to it in the plugin's
// environment.
func NewSocketDir(parent string) string { return filepath.Join(parent, "ndbridge-"+rand.Text()) }

// socketDirs matches the names that NewSocketDir gives.
func socketDirs() *regexp.Regexp { return regexp.MustCompile(`^ndbridge-[A-Z2-7]{26}$`) }

// listen makes the socket in dir, which it makes and removes, and sends it to the host.
func listen(ctx context.Context, side *fdpass.Conn, dir string) (net.Listener, error) {
	if dir == "" {
		return nil, fmt.Errorf("the host has not set %s", EnvSocketDir)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	defer RemoveSocketDir(dir)
	path := filepath.Join(dir, socketFile)
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	f, err := openSocket(path)
	if err == nil {
		err = errors.Join(side.Send([]byte(ListeningMessage), f), f.Close())
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// RemoveSocketDir removes a directory of NewSocketDir's, if it is there and has nothing in it but a
// socket. The plugin does; a host does for a plugin that was killed in that moment.
func RemoveSocketDir(dir string) {
	for _, path := range socketFiles(dir) {
		_ = os.Remove(path)
	}
	_ = os.Remove(dir)
}

// socketFiles lists the sockets in dir.
func socketFiles(dir string) []string {
	entries, _ := os.ReadDir(dir) // fails for a directory that is gone
	var paths []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), socketFile) {
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
