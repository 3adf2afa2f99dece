package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/internal/shm"
	"github.com/ndbridge/ndbridge/internal/wire"
	"github.com/ndbridge/ndbridge/internal/wire/wiretest"
)

// pluginVariable makes this test binary the plugin itself.
const pluginVariable = "NPYFILE_TEST_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(pluginVariable) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// npys writes the agreed arrays as files.
func npys(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, a := range coretest.Arrays() {
		write(t, filepath.Join(dir, a.Name+".npy"), npy(t, a))
	}
	return dir
}

func npy(t *testing.T, a coretest.Array) []byte {
	t.Helper()
	b, err := a.NPY()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// archive makes an .npz file. If align is not 0, members begin at multiples of it.
func archive(t *testing.T, method uint16, align int, files map[string][]byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for name, b := range files {
		if err := z.Flush(); err != nil {
			t.Fatal(err)
		}
		h := &zip.FileHeader{Name: name, Method: method}
		if at := buf.Len() + 30 + len(name); align > 0 && at%align != 0 {
			extra := align - at%align
			for extra < 4 {
				extra += align
			}
			h.Extra = append([]byte{0xfe, 0xca, byte(extra - 4), byte((extra - 4) >> 8)}, make([]byte, extra-4)...)
		}
		w, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func start(t *testing.T, dir string) contract.Producer {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], dir)
	cmd.Env = append(os.Environ(), pluginVariable+"=1")
	return wiretest.Start(t, cmd, wiretest.Options{Settings: contract.Settings{Program: "data"}}).Client
}

// TestConform runs the contract against the plugin's process, over the connection that a host has.
func TestConform(t *testing.T) {
	t.Parallel()
	p := start(t, npys(t))
	coretest.Conform(t, func(*testing.T) contract.Producer { return p })
}

// values reads an array through a mapping of the descriptor, as a host does.
func values(ctx context.Context, p contract.Producer, l contract.Lease) ([]byte, error) {
	segment, ok := l.Handle.(contract.Segment)
	if !ok {
		return nil, fmt.Errorf("handle %v", l.Handle)
	}
	f, err := p.Descriptor(ctx, segment.ID, false)
	if err != nil {
		return nil, err
	}
	m, err := shm.Map(f, segment.Size, false)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	v, err := core.NewView(l.Layout, m, nil)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	b := make([]byte, v.NBytes())
	_, err = core.CopyBytes(context.Background(), b, v)
	return b, errors.Join(err, v.Close())
}

func TestArchives(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sample := coretest.Arrays()[slices.IndexFunc(coretest.Arrays(), func(a coretest.Array) bool { return a.Name == "samples" })]
	members := map[string][]byte{"samples.npy": npy(t, sample), "notes.txt": []byte("no array")}
	write(t, filepath.Join(dir, "aligned.npz"), archive(t, zip.Store, 64, members))
	write(t, filepath.Join(dir, "packed.npz"), archive(t, zip.Deflate, 0, members))
	for i := range 4 { // with names of four lengths, one of these is aligned and three are not
		write(t, filepath.Join(dir, fmt.Sprintf("odd%d.npz", i)),
			archive(t, zip.Store, 0, map[string][]byte{strings.Repeat("s", i+1) + ".npy": members["samples.npy"]}))
	}
	p := newProducer(dir)
	defer p.Close()
	mapped, staged := 0, 0
	for e, err := range p.Arrays(t.Context()) {
		if err != nil || e.Err != nil {
			t.Fatalf("%s: %v, %v", e.Name, err, e.Err)
		}
		l, err := p.Lease(t.Context(), e.Name, contract.Request{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := values(t.Context(), p, l); err != nil || !bytes.Equal(got, sample.Data) {
			t.Errorf("%s: values differ, %v", e.Name, err)
		}
		want := contract.RouteMappedFile
		if strings.HasPrefix(e.Name, "packed") || l.Reason != "" {
			want = contract.RouteStaged
			staged++
			_, err := p.Lease(t.Context(), e.Name, contract.Request{Copy: contract.CopyNever})
			if r, ok := errors.AsType[*core.Error](err); !errors.Is(err, core.ErrNotShared) || !ok || r.Reason != contract.ReasonConverted {
				t.Errorf("%s without copies: %v", e.Name, err)
			}
		} else {
			mapped++
		}
		if l.Route != want || strings.HasPrefix(e.Name, "aligned") && l.Route != contract.RouteMappedFile {
			t.Errorf("%s: route %v, reason %v", e.Name, l.Route, l.Reason)
		}
		if err := p.Release(t.Context(), l.ID); err != nil {
			t.Error(err)
		}
	}
	if mapped != 2 || staged != 4 {
		t.Errorf("%d arrays were mapped and %d copied, want 2 and 4", mapped, staged)
	}
}

func TestBadFilesAreListedWithTheirError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := npy(t, coretest.Arrays()[0])
	lying := bytes.Replace(good, []byte("(3, 4, )"), []byte("(3, 9, )"), 1)
	if bytes.Equal(lying, good) {
		t.Fatal("the header was not changed")
	}
	bomb := archive(t, zip.Deflate, 0, map[string][]byte{"z.npy": good})
	directory := bytes.LastIndex(bomb, []byte("PK\x01\x02"))
	copy(bomb[directory+24:], []byte{0xff, 0xff, 0xff, 0x7f}) // its size when unpacked
	for name, b := range map[string][]byte{
		"lying.npy": lying, "short.npy": good[:40], "none.npy": {}, "text.npy": []byte("hello, world"),
		"cut.npy": good[:len(good)-1], "notzip.npz": []byte("PK no"), "bomb.npz": bomb, "good.npy": good,
	} {
		write(t, filepath.Join(dir, name), b)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "device.npy")); err != nil {
		t.Fatal(err)
	}
	p := newProducer(dir)
	defer p.Close()
	var names []string
	for e, err := range p.Arrays(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, e.Name)
		_, leaseErr := p.Lease(t.Context(), e.Name, contract.Request{})
		for _, err := range []error{e.Err, leaseErr} {
			if (e.Name == "good") != (err == nil) || err != nil && !errors.Is(err, core.ErrLayout) {
				t.Errorf("%s: %v", e.Name, err)
			}
		}
	}
	if want := []string{"bomb.z", "cut", "good", "lying", "none", "notzip", "short", "text"}; !slices.Equal(names, want) {
		t.Errorf("listed %q, want %q", names, want)
	}
	if n := p.Len(); n != 1 {
		t.Errorf("%d leases stand, want 1", n)
	}
}

func TestNoFolder(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "/no such folder")
	cmd.Env = append(os.Environ(), pluginVariable+"=1")
	p := wiretest.Start(t, cmd, wiretest.Options{Closed: true})
	_, err := p.Client.Open(t.Context(), contract.Settings{}, wire.Wish{})
	if e, ok := errors.AsType[*core.Error](err); !ok || !errors.Is(err, core.ErrConfig) || e.Remedy == "" {
		t.Errorf("Open = %v; want ErrConfig with a remedy", err)
	}
}

func TestWithoutAHost(t *testing.T) {
	t.Parallel()
	if err := run([]string{t.TempDir()}); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "npyfile") {
		t.Errorf("run = %v", err)
	}
	if err := run([]string{"a", "b"}); err == nil {
		t.Error("two folders are accepted")
	}
}

func TestConfiguredCopyPolicy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.npz"), archive(t, zip.Deflate, 0, map[string][]byte{"x.npy": npy(t, coretest.Arrays()[0])}))
	p := newProducer(dir)
	defer p.Close()
	settings := contract.Settings{Adapters: []contract.AdapterSettings{{Name: framework, Copy: contract.CopyNever}}}
	if err := p.Configure(settings); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Lease(t.Context(), "a.x", contract.Request{}); !errors.Is(err, core.ErrNotShared) {
		t.Errorf("Lease = %v; want ErrNotShared", err)
	}
	if _, err := p.Lease(t.Context(), "a.x", contract.Request{Copy: contract.CopyIfNeeded}); err != nil {
		t.Errorf("Lease with a copy = %v", err)
	}
	if _, err := p.Lease(t.Context(), "a.x", contract.Request{Writable: true}); !errors.Is(err, core.ErrReadOnly) {
		t.Errorf("writable Lease = %v; want ErrReadOnly", err)
	}
}
