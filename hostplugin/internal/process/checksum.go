package process

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// ParseChecksum reads "sha256:" and 64 hexadecimal digits.
func ParseChecksum(s string) ([]byte, error) {
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

// VerifyChecksum compares a plugin's file with its checksum. go-plugin's own SecureConfig would check the
// interpreter instead, since that is what is executed. The errors do not name the file.
func VerifyChecksum(path, checksum string) error {
	want, err := ParseChecksum(checksum)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return cause(err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return cause(err)
	}
	if got := h.Sum(nil); subtle.ConstantTimeCompare(got, want) != 1 {
		return fmt.Errorf("expected checksum sha256:%x, got sha256:%x", want, got)
	}
	return nil
}

// cause drops the operation and the path from a file error.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
