package install

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/internal/wire"
)

// TestWheelAndArchive installs the wheel into a virtual environment, unpacks the archive, and uses both. All that make dist makes is made twice.
func TestWheelAndArchive(t *testing.T) {
	t.Setenv("NDBRIDGE_LIB", "")
	script, err := filepath.Abs("testdata/wheel.py")
	if err != nil {
		t.Fatal(err)
	}
	python, out, again := variable(t, "NDBRIDGE_TEST_PYTHON_NATIVE"), dist(t), t.TempDir()
	makeDist(t, again)
	wheel := "ndbridge-" + wire.Release + "-py3-none-manylinux_2_17_x86_64.whl"
	archive := "ndbridge-" + wire.Release + "-linux-amd64"
	for _, name := range []string{wheel, archive + ".tar.gz", debName, rpmName} {
		first, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		if second, err := os.ReadFile(filepath.Join(again, name)); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s is another one each time: %v", name, err)
		}
	}

	s := sandbox{t: t, dir: t.TempDir(), env: os.Environ()}
	s.run(python, "-m", "venv", "venv")
	installed := filepath.Join(s.dir, "venv/bin")
	s.run(installed+"/pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", filepath.Join(out, wheel))
	if got := s.run(installed+"/python", script); got != "alone: "+wire.Release+"\n" {
		t.Errorf("without a host: %s", got)
	}
	if got := s.run(installed+"/ndbridge", "run", "--python", installed+"/python", "--script", script, "--", "hosted"); !strings.Contains(got, "connected: True "+wire.Release) {
		t.Errorf("as a program: %s", got)
	}
	if got := s.run(installed+"/python", "-m", "ndbridge", "doctor"); !strings.Contains(got, installed+"/python") {
		t.Errorf("doctor: %s", got)
	}

	s.run("tar", "-xf", filepath.Join(out, archive+".tar.gz"))
	if got := s.run(filepath.Join(s.dir, archive, "ndbridge"), "version"); !strings.Contains(got, archive+"/lib: libndbridge-heap.so, ndbridge-all.so") {
		t.Errorf("the archive: %s", got)
	}
	for _, name := range []string{"man/ndbridge.1.gz", "completions/_ndbridge", "completions/ndbridge.bash", "completions/ndbridge.fish", "THIRD-PARTY-LICENSES"} {
		if size(t, filepath.Join(s.dir, archive, name)) == 0 {
			t.Errorf("the archive's %s is empty", name)
		}
	}
}
