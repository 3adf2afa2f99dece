package process

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	right := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("content")))
	for sum, want := range map[string]string{
		right:                                  "",
		"sha256:" + strings.ToUpper(right[7:]): "",
		"sha256:" + strings.Repeat("0", 64):    "expected checksum sha256:0000",
		right[7:]:                              `does not begin with "sha256:"`,
		right[:len(right)-2]:                   "it has 62 digits",
		right[:len(right)-1] + "x":             "invalid byte",
		"":                                     "does not begin",
	} {
		err := VerifyChecksum(path, sum)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("Verify(%q) = %v, want %q", sum, err, want)
		}
	}
	for _, path := range []string{path + "x", filepath.Dir(path)} {
		if err := VerifyChecksum(path, right); err == nil || strings.Contains(err.Error(), path) {
			t.Errorf("Verify of %s = %v", path, err)
		}
	}
	if err := VerifyChecksum(path+"x", right); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Verify of a missing file = %v", err)
	}
}
