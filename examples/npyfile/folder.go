package main

import (
	"archive/zip"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/core"
)

// maxRatio is above what the compression of .npz files can reach. A member that promises more is a
// lie, and not worth the memory.
const maxRatio = 1100

// folder is where the files lie. Nothing is kept of it between calls, so that files may come and go.
type folder string

// item is an array in the folder: a file, or a member of an archive.
type item struct {
	name   string
	file   string // path
	member string // its name in the archive, or "" if the file is the array
}

// list gives all arrays, sorted by name. Of two with one name the .npy file counts.
func (f folder) list() ([]item, error) {
	files, err := f.files()
	if err != nil {
		return nil, err
	}
	var items []item
	for _, name := range files {
		path := filepath.Join(string(f), name)
		if stem, ok := strings.CutSuffix(name, ".npy"); ok {
			items = append(items, item{name: stem, file: path})
		}
		if stem, ok := strings.CutSuffix(name, ".npz"); ok {
			items = append(items, members(stem, path)...)
		}
	}
	slices.SortStableFunc(items, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.member, b.member))
	})
	return slices.CompactFunc(items, func(a, b item) bool { return a.name == b.name }), nil
}

// members lists an archive. One that cannot be read is listed itself, so that its error shows.
func members(stem, path string) []item {
	z, err := zip.OpenReader(path)
	if err != nil {
		return []item{{name: stem, file: path, member: "?"}}
	}
	defer z.Close() //nolint:errcheck // only read
	var items []item
	for _, m := range z.File {
		if inner, ok := strings.CutSuffix(m.Name, ".npy"); ok {
			items = append(items, item{name: stem + "." + inner, file: path, member: m.Name})
		}
	}
	return items
}

// find finds one array. The name only ever is compared, so it cannot lead out of the folder.
func (f folder) find(name string) (item, bool, error) {
	items, err := f.list()
	if err != nil {
		return item{}, false, err
	}
	i, ok := slices.BinarySearchFunc(items, name, func(it item, name string) int { return cmp.Compare(it.name, name) })
	if !ok {
		return item{}, false, nil
	}
	return items[i], true, nil
}

// files gives the names of the regular files in the folder.
func (f folder) files() ([]string, error) {
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return nil, &core.Error{
			Op: "read", Kind: core.ErrConfig, Err: err, Remedy: "give the folder of the files as the plugin's argument",
		}
	}
	var names []string
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(string(f), e.Name())) // follows links
		if err == nil && info.Mode().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// array is an opened item. Either file holds the data at the layout's offset, or data does.
type array struct {
	layout core.Layout
	file   *os.File
	data   func() ([]byte, error) // nil if the file itself can be mapped
}

// open opens an item and reads its header. The caller closes the file.
func (i item) open() (_ *array, err error) {
	file, err := os.Open(i.file)
	if err != nil {
		kind := core.ErrUnavailable
		if errors.Is(err, fs.ErrNotExist) {
			kind = core.ErrNotFound
		}
		return nil, &core.Error{Op: "read", Kind: kind, Err: err}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return nil, &core.Error{Op: "read", Kind: core.ErrUnavailable, Err: err}
	}
	if i.member != "" {
		return i.openMember(file, info.Size())
	}
	h, err := readHeader(file, info.Size())
	if err != nil {
		return nil, err
	}
	return mappable(file, h, 0), nil
}

// mappable gives the array that begins at byte base of file. If its elements are not aligned there,
// they must be copied.
func mappable(file *os.File, h header, base int64) *array {
	spec := h.layout.Spec()
	a := &array{layout: h.layout, file: file}
	if (base+int64(spec.Offset))%alignment(spec.DType) == 0 {
		spec.Offset += int(base)
		if l, err := core.NewLayout(spec); err == nil {
			a.layout = l
			return a
		}
	}
	a.data = func() ([]byte, error) {
		b := make([]byte, h.end)
		_, err := file.ReadAt(b, base)
		return b, err
	}
	return a
}

// alignment is what the processor wants of the address of an element.
func alignment(d core.DType) int64 {
	switch {
	case d.Opaque():
		return 1
	case d == core.Complex64 || d == core.Complex128:
		return int64(d.Size() / 2)
	default:
		return int64(max(d.Size(), 1))
	}
}

func (i item) openMember(file *os.File, size int64) (*array, error) {
	z, err := zip.NewReader(file, size)
	if err != nil {
		return nil, malformed(fmt.Errorf("%s: %w", filepath.Base(i.file), err))
	}
	at := slices.IndexFunc(z.File, func(m *zip.File) bool { return m.Name == i.member })
	if at < 0 {
		return nil, &core.Error{Op: "read", Kind: core.ErrNotFound, Err: fmt.Errorf("no member %s", i.member)}
	}
	m := z.File[at]
	promised := m.UncompressedSize64
	if promised > m.CompressedSize64*maxRatio+1<<16 || m.CompressedSize64 > uint64(size) {
		return nil, malformed(fmt.Errorf("%s promises %d bytes from %d", m.Name, promised, m.CompressedSize64))
	}
	const encrypted = 1
	if m.Flags&encrypted != 0 {
		return nil, &core.Error{Op: "read", Kind: core.ErrUnsupported, Err: fmt.Errorf("%s is encrypted", m.Name)}
	}
	r, err := m.Open()
	if err != nil {
		return nil, malformed(err)
	}
	defer r.Close() //nolint:errcheck // only read
	h, err := readHeader(r, int64(promised))
	if err != nil {
		return nil, err
	}
	if m.Method == zip.Store {
		base, err := m.DataOffset()
		if err != nil || base+h.end > size {
			return nil, malformed(fmt.Errorf("%s lies outside of the archive", m.Name))
		}
		return mappable(file, h, base), nil
	}
	return &array{layout: h.layout, file: file, data: func() ([]byte, error) { return inflate(m, h.end) }}, nil
}

// inflate reads the first n bytes of a compressed member, and as far as its checksum.
func inflate(m *zip.File, n int64) (_ []byte, err error) {
	r, err := m.Open()
	if err != nil {
		return nil, malformed(err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, malformed(fmt.Errorf("%s: %w", m.Name, err))
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return nil, malformed(fmt.Errorf("%s: %w", m.Name, err))
	}
	return b, nil
}
