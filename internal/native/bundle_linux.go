package native

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/ndbridge/ndbridge/core"
)

const (
	// manifest lists the files and their checksums, as sha256sum does.
	manifest = "SHA256SUMS"
	// maxFile limits what one file may become.
	maxFile = 256 << 20
)

// bundle is what is embedded.
type bundle struct {
	files fs.FS
	sums  []sum
	key   string // names this content
}

// sum is a line of the manifest.
type sum struct {
	name string
	hash [sha256.Size]byte
}

func dir() (string, error) {
	files, err := embedded()
	if err != nil {
		return "", err
	}
	b, err := open(files)
	if err != nil {
		return "", err
	}
	return b.unpackIn(places())
}

// open reads the manifest, which is as trustworthy as the executable.
func open(files fs.FS) (*bundle, error) {
	text, err := fs.ReadFile(files, manifest)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: this clone has not built it; run make native", ErrNone)
	case err != nil:
		return nil, err
	}
	key := sha256.Sum256(text)
	b := &bundle{files: files, key: hex.EncodeToString(key[:16])}
	for line := range strings.Lines(string(text)) {
		digits, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		hash, err := hex.DecodeString(digits)
		if err != nil || len(hash) != sha256.Size || !filepath.IsLocal(name) {
			return nil, fmt.Errorf("the embedded %s has the line %q", manifest, line)
		}
		b.sums = append(b.sums, sum{name, [sha256.Size]byte(hash)})
	}
	return b, nil
}

// unpackIn unpacks the bundle in the first place that can hold it, and gives the directory.
func (b *bundle) unpackIn(places []place) (string, error) {
	var failed []string
	for _, p := range places {
		dir := filepath.Join(p.dir, b.key)
		err := p.err
		if err == nil {
			err = b.unpack(p.dir, dir)
		}
		if err == nil {
			return dir, nil
		}
		failed = append(failed, err.Error())
	}
	return "", &core.Error{
		Kind: core.ErrConfig,
		Err:  fmt.Errorf("the embedded plugin cannot be unpacked anywhere: %s", strings.Join(failed, "; ")),
		Remedy: "set XDG_CACHE_HOME to a directory in which this user can write files and execute them, or NDBRIDGE_LIB to one " +
			"that holds the plugin",
	}
}

// unpack makes dir, in base, hold the files.
func (b *bundle) unpack(base, dir string) error {
	if err := own(base); err != nil {
		return err
	}
	if err := own(dir); err != nil {
		return err
	}
	if err := executable(dir); err != nil {
		return err
	}
	if old := readStamp(dir); old != "" && old == b.stamp(dir) {
		return nil
	}
	for _, s := range b.sums {
		if err := b.unpackFile(dir, s); err != nil {
			return err
		}
	}
	// Without a stamp the next host compares the checksums again, which only takes longer.
	_ = replace(filepath.Join(dir, stampFile), []byte(b.stamp(dir)))
	return nil
}

// unpackFile makes one file be as it was built.
func (b *bundle) unpackFile(dir string, s sum) error {
	file := filepath.Join(dir, s.name)
	if hash, err := hashOf(file); err == nil && hash == s.hash {
		return nil
	}
	compressed, err := fs.ReadFile(b.files, s.name+".zst")
	if err != nil {
		return err
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFile))
	if err != nil {
		return err
	}
	defer decoder.Close()
	data, err := decoder.DecodeAll(compressed, nil)
	if err != nil {
		return fmt.Errorf("the embedded %s: %w", s.name, err)
	}
	if sha256.Sum256(data) != s.hash {
		return fmt.Errorf("the embedded %s does not have the checksum that it was built with", s.name)
	}
	if parent := filepath.Dir(file); parent != dir {
		if err := own(parent); err != nil {
			return err
		}
	}
	return replace(file, data)
}
