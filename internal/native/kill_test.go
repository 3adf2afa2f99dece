package native

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/klauspost/compress/zstd"
)

// killedIn is set to a directory in the process that TestKilledWhileUnpacking kills.
const killedIn = "NDBRIDGE_TEST_KILLED_IN"

// TestKilledWhileUnpacking kills a host in the middle of a file. Nothing half written has a name, and the next host unpacks it all.
func TestKilledWhileUnpacking(t *testing.T) {
	t.Parallel()
	const name = "plugin.so"
	plugin := bytes.Repeat([]byte("plugin, "), 8<<20) // 64 MiB
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	b := bundled(t, fstest.MapFS{
		manifest:      &fstest.MapFile{Data: fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(plugin), name)},
		name + ".zst": &fstest.MapFile{Data: encoder.EncodeAll(plugin, nil)},
	})
	if base := os.Getenv(killedIn); base != "" {
		_, err := b.unpackIn([]place{{dir: base}})
		t.Fatal("not killed: ", err)
	}
	base := filepath.Join(t.TempDir(), "ndbridge")
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestKilledWhileUnpacking$")
	cmd.Env = append(os.Environ(), killedIn+"="+base)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, b.key)
	half := func() bool { // a part of the file has been written
		begun, err := filepath.Glob(filepath.Join(dir, temporary+"*"))
		if err != nil || len(begun) != 1 {
			return false
		}
		info, err := os.Stat(begun[0])
		return err == nil && info.Size() > 0
	}
	for deadline := time.Now().Add(time.Minute); !half() && time.Now().Before(deadline); {
		time.Sleep(100 * time.Microsecond)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if left, err := filepath.Glob(filepath.Join(dir, temporary+"*")); err != nil || len(left) != 1 {
		t.Fatalf("it was not killed in the middle: %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(dir, name)); !os.IsNotExist(err) {
		t.Errorf("half a file has its name: %v", err)
	}
	if got, err := b.unpackIn([]place{{dir: base}}); err != nil || got != dir {
		t.Fatal(got, err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, plugin) {
		t.Errorf("it has %d bytes, want %d: %v", len(got), len(plugin), err)
	}
}
