package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/internal/wire"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestEmbeddedWithoutHome: a command that embeds its plugin unpacks it where there is no home and the system is read-only but for
// /tmp, as in many containers. Where it can unpack nowhere, it says what is wrong with each place.
func TestEmbeddedWithoutHome(t *testing.T) {
	out := dist(t)
	r := aRoot(t, "")
	archive := "ndbridge-" + wire.Release + "-linux-amd64"
	dir := t.TempDir()
	r.must(r.command("tar", "-xf", filepath.Join(out, archive+".tar.gz"), "-C", dir, archive+"/ndbridge"))
	r.put(filepath.Join(dir, archive, "ndbridge"), "/opt/ndbridge")
	r.put("../../examples/container/camera.py", "/opt/camera.py")
	r.must(r.command("chmod", "755", filepath.Join(r.dir, "opt/ndbridge")))

	view := []string{"/opt/ndbridge", "view", "--script", "/opt/camera.py", "frame"}
	if got := r.must(r.readOnly(view...)); !strings.Contains(got, "shared-heap") {
		t.Errorf("without HOME: %s", got)
	}
	r.must(r.in("sh", "-c", "mkdir /mnt/other && chown 12345 /mnt/other"))
	for tmp, problem := range map[string]string{"mode=1777,size=1m": "no space left on device", "mode=1777,noexec": "is mounted noexec"} {
		said, err := r.inside(tmp, append([]string{"env", "XDG_CACHE_HOME=/mnt/other"}, view...)).CombinedOutput()
		if err == nil {
			t.Fatalf("it works: %s", said)
		}
		for _, want := range []string{"cannot be unpacked anywhere", "/mnt/other belongs to another user (12345)", "/tmp/ndbridge-0/", problem, "set XDG_CACHE_HOME"} {
			if !strings.Contains(string(said), want) {
				t.Errorf("it lacks %q: %s", want, said)
			}
		}
	}
}

// TestCache: hosts that begin at once, that are killed while they unpack, and that find damaged files leave complete files, and the next ones
// work with them.
func TestCache(t *testing.T) {
	command, cache := this(t).command, t.TempDir()
	view := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), command, "view", "--python", harness.Python(t), "--script", "../../examples/container/camera.py", "frame")
		cmd.Env = append(os.Environ(), "NDBRIDGE_LIB=", "XDG_CACHE_HOME="+cache)
		return cmd
	}
	// complete gives the files, which must be those of the checksums.
	complete := func() []string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(cache, "ndbridge/*/*"))
		if err != nil || len(files) != 4 {
			t.Fatalf("%q, %v", files, err)
		}
		sums := sandbox{t: t, dir: filepath.Dir(files[0]), env: os.Environ()}
		manifest, err := filepath.Abs("../../native/linux_amd64/files/SHA256SUMS")
		if err != nil {
			t.Fatal(err)
		}
		sums.run("sha256sum", "--check", "--quiet", manifest)
		return files
	}

	killInTheMiddle(t, view, cache)
	var hosts sync.WaitGroup
	for range 4 {
		hosts.Go(func() {
			if out, err := view().CombinedOutput(); err != nil || !strings.Contains(string(out), "shared-heap") {
				t.Errorf("one of several: %v: %s", err, out)
			}
		})
	}
	hosts.Wait()
	for _, file := range complete() {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			continue
		}
		for _, damage := range []string{": >", "printf x | dd conv=notrunc status=none of="} {
			sandbox{t: t, dir: cache, env: os.Environ()}.run("sh", "-c", "chmod u+w "+file+" && "+damage+file+" && touch --date @"+strconv.FormatInt(info.ModTime().Unix(), 10)+" "+file)
			if out, err := view().CombinedOutput(); err != nil || !strings.Contains(string(out), "shared-heap") {
				t.Errorf("after %s%s: %v: %s", damage, file, err, out)
			}
			complete()
		}
	}
}

// killInTheMiddle kills a host while it writes a file into the cache, which takes some milliseconds: if that comes too late, the next one.
func killInTheMiddle(t *testing.T, host func() *exec.Cmd, cache string) {
	t.Helper()
	halves := func() []string {
		t.Helper()
		half, err := filepath.Glob(filepath.Join(cache, "ndbridge/*/.unpacking-*"))
		if err != nil {
			t.Fatal(err)
		}
		return half
	}
	var left []string
	for deadline := time.Now().Add(time.Minute); len(left) != 1; left = halves() {
		if time.Now().After(deadline) {
			t.Fatal("no host was killed in the middle of a file")
		}
		if err := os.RemoveAll(filepath.Join(cache, "ndbridge")); err != nil {
			t.Fatal(err)
		}
		h := host()
		if err := h.Start(); err != nil {
			t.Fatal(err)
		}
		for begun := time.Now(); len(halves()) == 0 && time.Since(begun) < 5*time.Second; {
			time.Sleep(50 * time.Microsecond)
		}
		if err := h.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = h.Wait() // it was killed
	}
	old := time.Now().Add(-2 * time.Hour) // nobody is at work on it any more
	if err := os.Chtimes(left[0], old, old); err != nil {
		t.Fatal(err)
	}
}

// TestLicences: a module without a licence is not passed over.
func TestLicences(t *testing.T) {
	s := sandbox{t: t, dir: t.TempDir(), env: []string{"PATH=/usr/bin:/bin"}}
	s.run("bash", "-c", `mkdir go module && touch go/LICENSE
		printf '#!/bin/sh\ncase $1 in env) [ $2 = GOROOT ] && echo %s/go || echo go1 ;; list) echo example.com/module v1.0.0 %s/module %s/module ;; esac\n' "$PWD" "$PWD" "$PWD" >tool
		chmod +x tool`)
	script, err := filepath.Abs("../../native/licences.sh")
	if err != nil {
		t.Fatal(err)
	}
	const check = `! "$0" "$PWD/tool" 2>says && grep "example.com/module v1.0.0 has no licence" says && touch module/LICENSE && "$0" "$PWD/tool"`
	if got := s.run("bash", "-c", check, script); !strings.Contains(got, "==== example.com/module v1.0.0: LICENSE") {
		t.Error(got)
	}
}
