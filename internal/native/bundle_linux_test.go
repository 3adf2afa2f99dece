package native

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ndbridge/ndbridge/core"
)

// content is what the bundles of tests hold.
var content = map[string]string{"heap.so": strings.Repeat("heap", 1000), "plugin.so": strings.Repeat("plugin", 50000), "python/module.py": "connected = False\n"}

func embed(t *testing.T) fstest.MapFS {
	t.Helper()
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	var sums bytes.Buffer
	for _, name := range []string{"heap.so", "plugin.so", "python/module.py"} {
		_, _ = fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256([]byte(content[name])), name)
		files[name+".zst"] = &fstest.MapFile{Data: encoder.EncodeAll([]byte(content[name]), nil)}
	}
	files[manifest] = &fstest.MapFile{Data: sums.Bytes()}
	return files
}

func bundled(t *testing.T, files fs.FS) *bundle {
	t.Helper()
	b, err := open(files)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// holds checks that a directory holds the content, and nothing that is not complete.
func holds(t *testing.T, dir string) {
	t.Helper()
	for name, want := range content {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s has %d bytes, want %d: %v", name, len(got), len(want), err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, temporary+"*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	base := filepath.Join(t.TempDir(), "cache", "ndbridge")
	files := embed(t)
	dir, err := bundled(t, files).unpackIn([]place{{dir: base}})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, dir)
	for _, path := range []string{base, dir, filepath.Join(dir, "python")} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s has the mode %v: %v", path, info.Mode(), err)
		}
	}
	// What is there is not unpacked again: this bundle has a manifest alone.
	again, err := bundled(t, fstest.MapFS{manifest: files[manifest]}).unpackIn([]place{{dir: base}})
	if err != nil || again != dir {
		t.Errorf("%s, %v; want %s", again, err, dir)
	}
}

// TestDamageIsMended: whatever has happened to the files since they were unpacked, they are as they were built afterwards.
func TestDamageIsMended(t *testing.T) {
	t.Parallel()
	// rewrite changes a file but neither its size nor its modification time.
	rewrite := func(file string) error {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		return errors.Join(os.Chmod(file, 0o600), os.WriteFile(file, bytes.ToUpper([]byte(content["plugin.so"])), 0o600),
			os.Chmod(file, 0o400), os.Chtimes(file, info.ModTime(), info.ModTime()))
	}
	for name, damage := range map[string]func(file string) error{
		"truncated": func(file string) error { return os.Truncate(file, 7) },
		"removed":   os.Remove,
		"changed":   rewrite,
		"a link":    func(file string) error { return errors.Join(os.Remove(file), os.Symlink("/etc/passwd", file)) },
		"no stamp":  func(file string) error { return os.Remove(filepath.Join(filepath.Dir(file), stampFile)) },
		"a stamp of another file": func(file string) error {
			stamp := filepath.Join(filepath.Dir(file), stampFile)
			return errors.Join(rewrite(file), os.Chmod(stamp, 0o600), os.WriteFile(stamp, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, places := bundled(t, embed(t)), []place{{dir: filepath.Join(t.TempDir(), "ndbridge")}}
			dir, err := b.unpackIn(places)
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(filepath.Join(dir, "plugin.so")); err != nil {
				t.Fatal(err)
			}
			if _, err := b.unpackIn(places); err != nil {
				t.Fatal(err)
			}
			holds(t, dir)
			if readStamp(dir) == "" || readStamp(dir) != b.stamp(dir) {
				t.Error("the stamp is not of these files")
			}
		})
	}
}

// TestUnpackingIsTakenUp: a host that was killed while it unpacked leaves complete files and a temporary one.
func TestUnpackingIsTakenUp(t *testing.T) {
	t.Parallel()
	base, files := filepath.Join(t.TempDir(), "ndbridge"), embed(t)
	delete(files, "plugin.so.zst") // it comes no further
	if _, err := bundled(t, files).unpackIn([]place{{dir: base}}); err == nil {
		t.Fatal("a bundle without its plugin was unpacked")
	}
	b := bundled(t, embed(t))
	dir := filepath.Join(base, b.key)
	if got, err := os.ReadFile(filepath.Join(dir, "heap.so")); err != nil || string(got) != content["heap.so"] {
		t.Fatal("the first file was not unpacked", err)
	}
	dead, live := filepath.Join(dir, temporary+"dead"), filepath.Join(dir, temporary+"live")
	old := time.Now().Add(-2 * abandoned)
	if err := errors.Join(os.WriteFile(dead, nil, 0o600), os.Chtimes(dead, old, old), os.WriteFile(live, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.unpackIn([]place{{dir: base}}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(live); err != nil {
		t.Error("what another host unpacks was removed:", err)
	}
	holds(t, dir)
}

func TestHostsUnpackAtOnce(t *testing.T) {
	t.Parallel()
	files, places := embed(t), []place{{dir: filepath.Join(t.TempDir(), "a", "b", "ndbridge")}}
	var hosts sync.WaitGroup
	for range 8 {
		b := bundled(t, files)
		hosts.Go(func() {
			dir, err := b.unpackIn(places)
			if err != nil {
				t.Error(err)
				return
			}
			for name, want := range content {
				if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
					t.Errorf("%s has %d bytes: %v", name, len(got), err)
				}
			}
		})
	}
	hosts.Wait()
	dir, err := bundled(t, files).unpackIn(places)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, dir)
}

// TestUnfitPlaces: a place in which others could change files, or in which files cannot be, is passed over.
func TestUnfitPlaces(t *testing.T) {
	t.Parallel()
	const stranger = 54321
	b := bundled(t, embed(t))
	mkdir := func(path string) error { return os.MkdirAll(path, 0o700) }
	give := func(path string) error { return errors.Join(mkdir(path), os.Chown(path, stranger, stranger)) }
	for name, test := range map[string]struct {
		spoil func(base string) error
		want  string
	}{
		"others write": {func(base string) error { return errors.Join(mkdir(base), os.Chmod(base, 0o777)) }, "other users can write"}, //nolint:gosec // it is refused
		"a link":       {func(base string) error { return os.Symlink(filepath.Dir(base), base) }, "is not a directory"},
		"a file":       {func(base string) error { return os.WriteFile(base, nil, 0o600) }, "is not a directory"},
		"below a file": {func(base string) error {
			return errors.Join(os.Remove(filepath.Dir(base)), os.WriteFile(filepath.Dir(base), nil, 0o600))
		}, "not a directory"},
		"another's":       {give, "belongs to another user (54321)"},
		"in another's":    {func(base string) error { return give(filepath.Dir(base)) }, "belongs to another user (54321)"},
		"another's files": {func(base string) error { return give(filepath.Join(base, b.key)) }, "belongs to another user (54321)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(name, "another's") && os.Geteuid() != 0 {
				t.Skip("only root gives directories away")
			}
			base, good := filepath.Join(t.TempDir(), "parent", "ndbridge"), filepath.Join(t.TempDir(), "ndbridge")
			if err := errors.Join(mkdir(filepath.Dir(base)), test.spoil(base)); err != nil {
				t.Fatal(err)
			}
			dir, err := b.unpackIn([]place{{dir: base}, {dir: good}})
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Dir(dir) != good {
				t.Errorf("unpacked into %s", dir)
			}
			holds(t, dir)
			_, err = b.unpackIn([]place{{dir: base}, {err: errors.New("$HOME is not defined")}})
			if e, ok := errors.AsType[*core.Error](err); !ok || !errors.Is(err, core.ErrConfig) || !strings.Contains(e.Remedy, "XDG_CACHE_HOME") ||
				!strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "; $HOME is not defined") {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// TestASharedTemporaryDirectory: in a directory with the sticky bit, such as /tmp, entries are safe whoever it belongs to.
func TestASharedTemporaryDirectory(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	if err := os.Chmod(tmp, 0o777|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(tmp, 54321, 54321); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := bundled(t, embed(t)).unpackIn([]place{{dir: filepath.Join(tmp, "ndbridge-0")}}); err != nil {
		t.Error(err)
	}
}

func TestBrokenExecutables(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil func(files fstest.MapFS)
		want  string
	}{
		"checksum": {func(files fstest.MapFS) { files["plugin.so.zst"] = files["heap.so.zst"] }, "does not have the checksum"},
		"zstd":     {func(files fstest.MapFS) { files["plugin.so.zst"] = &fstest.MapFile{Data: []byte("plugin")} }, "the embedded plugin.so"},
		"manifest": {func(files fstest.MapFS) { files[manifest] = &fstest.MapFile{Data: []byte("abc  heap.so\n")} }, "has the line"},
		"escape": {func(files fstest.MapFS) {
			files[manifest] = &fstest.MapFile{Data: fmt.Appendf(nil, "%x  ../heap.so\n", sha256.Sum256(nil))}
		}, "has the line"},
		"nothing": {func(files fstest.MapFS) { delete(files, manifest) }, "make native"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := embed(t)
			test.spoil(files)
			b, err := open(files)
			if err == nil {
				_, err = b.unpackIn([]place{{dir: filepath.Join(t.TempDir(), "ndbridge")}})
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, ErrNone) != (name == "nothing") {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

func TestPlaces(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/cache")
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	t.Setenv("TMPDIR", "/scratch")
	own := fmt.Sprintf("/scratch/ndbridge-%d", os.Geteuid())
	if got := places(); len(got) != 3 || got[0].dir != "/cache/ndbridge" || got[1].dir != "/run/user/7/ndbridge" || got[2].dir != own {
		t.Errorf("%v", got)
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("HOME", "")
	if got := places(); len(got) != 2 || got[0].err == nil || got[1].dir != own {
		t.Errorf("without HOME: %v", got)
	}
}
