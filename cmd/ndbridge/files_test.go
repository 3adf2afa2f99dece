package main

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFilesAreNumPysOwn writes an array of every kind, and has NumPy compare the files with those that
// it wrote itself.
func TestFilesAreNumPysOwn(t *testing.T) {
	t.Parallel()
	ours, numpys := t.TempDir(), t.TempDir()
	r := on(t, "view", "kinds.py", "--json",
		"--npy", filepath.Join(ours, "{name}.npy"), "--raw", filepath.Join(ours, "{name}.raw"), "--", numpys)
	r.want(t, statusOK, `"name":"windows"`, "")
	if n := len(r.objects(t)); n < 24 {
		t.Errorf("%d arrays:\n%s", n, r.stdout)
	}
	out, err := exec.CommandContext(t.Context(), python(t), "testdata/compare.py", ours, numpys).CombinedOutput()
	if err != nil || string(out) != "compared 50\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestPicture(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "{name}.png")
	r := on(t, "view", "program.py", "--png", name, "frame", `batch['a "b"'][0]`)
	r.want(t, statusOK, "wrote "+filepath.Join(dir, "frame.png"), "")
	whole := decode(t, filepath.Join(dir, "frame.png"))
	if whole.Bounds() != image.Rect(0, 0, 96, 64) {
		t.Errorf("the picture is %v", whole.Bounds())
	}
	for y := range 64 {
		for x := range 96 {
			at := (y*96 + x) * 3
			r, g, b, a := whole.At(x, y).RGBA()
			if got, want := []byte{byte(r >> 8), byte(g >> 8), byte(b >> 8), byte(a >> 8)},
				[]byte{byte(at), byte(at + 1), byte(at + 2), 255}; !bytes.Equal(got, want) {
				t.Fatalf("point %d, %d is %v, want %v", x, y, got, want)
			}
		}
	}
	if files, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(files) != 2 {
		t.Errorf("%v, %v", files, err)
	}
	on(t, "view", "program.py", "--png", name, "--png-size", "48", "frame").want(t, statusOK, "wrote", "")
	if small := decode(t, filepath.Join(dir, "frame.png")); small.Bounds() != image.Rect(0, 0, 48, 32) {
		t.Errorf("the picture of at most 48 points is %v", small.Bounds())
	}
}

func decode(t *testing.T, name string) image.Image {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return img
}

// TestFilesThatCannotBe holds that a file is there as a whole or as it was, and that one array does not
// overwrite another.
func TestFilesThatCannotBe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := file(t, dir, "old.png", "as it was")
	for name, c := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"no folder": {[]string{"--npy", dir + "/none/x.npy", "small"}, statusFailed, "no such file or directory\n  remedy: name a file in a directory"},
		"a folder":  {[]string{"--raw", dir, "small"}, statusFailed, "is a directory"},
		"full":      {[]string{"--raw", "/dev/full", "small"}, statusFailed, "no space left on device"},
		"no number": {[]string{"--png", old, "arguments", "--", "x"}, statusFailed, "nothing is known of the value of <U1"},
		"several":   {[]string{"--npy", dir + "/x.npy", "small", "big"}, statusUsage, "must contain {name}"},
		"all":       {[]string{"--raw", dir + "/x.raw"}, statusUsage, "must contain {name}"},
		"one file":  {[]string{"--raw", dir + "/{name}", "batch['x']", `batch["x"]`}, statusUsage, "would both be written to"},
		"size":      {[]string{"--png", dir + "/x.png", "--png-size", "-1", "small"}, statusUsage, "--png-size must not be negative"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on(t, "view", "program.py", c.args...).want(t, c.status, "", c.want)
		})
	}
	t.Cleanup(func() {
		if text, err := os.ReadFile(old); err != nil || string(text) != "as it was" {
			t.Errorf("the old file holds %q, %v", text, err)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
			t.Errorf("files left: %v, %v", files, err)
		}
	})
}

// TestFilesThatCould holds that what was done is told, though a file could not be written.
func TestFilesThatCould(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{"people": nil, "programs": {"--json"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			flags := append([]string{"--npy", dir + "/{name}.npy", "--raw", dir + "/{name}.raw", "--png", dir + "/{name}.png"}, flags...)
			r := on(t, "view", "program.py", append(flags, "small", "arguments", "--", "x")...)
			r.want(t, statusFailed, "arguments", "")
			if !strings.Contains(r.stdout+r.stderr, "nothing is known of the value of <U1") {
				t.Errorf("the error is not told:\n%s", r.stderr)
			}
			told := r.stdout
			if name == "programs" {
				told = r.stderr
				if all := r.objects(t); len(all) != 2 || all[0]["error"] != nil || all[1]["error"] == nil {
					t.Errorf("the objects are %v", all)
				}
			} else if !strings.Contains(r.stdout, "<U1") {
				t.Errorf("nothing is said of the array:\n%s", r.stdout)
			}
			for _, file := range []string{"small.npy", "small.raw", "small.png", "arguments.npy", "arguments.raw"} {
				if strings.Count(told, "wrote "+dir+"/"+file) != 1 {
					t.Errorf("%s was written, of which is said\n%s", file, told)
				}
			}
			if strings.Contains(told, "arguments.png") {
				t.Errorf("no picture could be drawn, and it says\n%s", told)
			}
		})
	}
}

// TestFileIsReplacedAsAWhole holds that a file keeps its permissions, and that a link and a device are
// written to and not replaced.
func TestFileIsReplacedAsAWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := file(t, dir, "old.raw", strings.Repeat("longer than the array ", 10))
	link := filepath.Join(dir, "link.raw")
	if err := os.Symlink("old.raw", link); err != nil {
		t.Fatal(err)
	}
	want := "\x01\x00\x02\x00\x03\x00\x04\x00\x05\x00\x06\x00"
	for _, name := range []string{link, old} {
		on(t, "view", "program.py", "--raw", name, "small").want(t, statusOK, "wrote "+name, "")
		text, err := os.ReadFile(old)
		if err != nil || string(text) != want {
			t.Errorf("%s holds %q, %v", name, text, err)
		}
	}
	if to, err := os.Readlink(link); err != nil || to != "old.raw" {
		t.Errorf("the link is %q, %v", to, err)
	}
	if info, err := os.Stat(old); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	on(t, "view", "program.py", "--npy", "/dev/null", "small").want(t, statusOK, "wrote /dev/null", "")
}
