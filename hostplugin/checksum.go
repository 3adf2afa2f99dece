package hostplugin

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// parseChecksum reads "sha256:" and 64 hexadecimal digits.
func parseChecksum(s string) ([]byte, error) {
	digits, ok := strings.CutPrefix(s, "sha256:")
	if !ok {
		return nil, errors.New(`it does not begin with "sha256:"`)
	}
	sum, err := hex.DecodeString(digits)
	if err != nil {
		return nil, err
	}
	if len(sum) != sha256.Size {
		return nil, fmt.Errorf("it has %d digits", len(digits))
	}
	return sum, nil
}

// verifyChecksum compares a file with the checksum that the configuration gives. go-plugin's own
// SecureConfig would check the interpreter instead, since that is what is executed.
func verifyChecksum(path, checksum string) error {
	want, err := parseChecksum(checksum)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return unwrapPath(err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return unwrapPath(err)
	}
	if got := h.Sum(nil); subtle.ConstantTimeCompare(got, want) != 1 {
		return fmt.Errorf("expected checksum sha256:%x, got sha256:%x", want, got)
	}
	return nil
}
