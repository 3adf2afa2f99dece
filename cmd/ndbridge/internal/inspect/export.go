package inspect

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/ndbridge/ndbridge/bridges/npy"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/render"
)

// export gives an array as a file.
func (s *Server) export(w http.ResponseWriter, r *http.Request) {
	name, kind := r.URL.Query().Get("name"), r.PathValue("kind")
	write, known := map[string]struct {
		kind string
		to   func(context.Context, io.Writer, *core.View) error
	}{
		"npy": {"application/octet-stream", func(ctx context.Context, w io.Writer, v *core.View) error {
			_, err := npy.Write(ctx, w, v)
			return err
		}},
		"png": {"image/png", func(ctx context.Context, w io.Writer, v *core.View) error {
			return render.PNG(ctx, w, v, render.PNGOptions{Size: -1})
		}},
		"csv": {"text/csv; charset=utf-8", writeCSV},
	}[kind]
	if !known || name == "" {
		http.NotFound(w, r)
		return
	}
	v, err := s.options.Session.View(r.Context(), name, hostplugin.NoWait(), hostplugin.AllowCopy())
	if err == nil {
		defer v.Close() //nolint:errcheck // the session reports what matters
		if err = tooLarge(v); err == nil {
			err = v.Wait(r.Context())
		}
	}
	if err != nil {
		http.Error(w, err.Error(), statusOf(err))
		return
	}
	w.Header().Set("Content-Type", write.kind)
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": fileName(name) + "." + kind}))
	out := &begun{w: bufio.NewWriterSize(w, 1<<16)}
	err = write.to(r.Context(), out, v)
	if err == nil {
		err = out.w.Flush()
	}
	switch {
	case err == nil:
	case out.n == 0:
		w.Header().Del("Content-Disposition")
		http.Error(w, err.Error(), statusOf(err))
	default:
		panic(http.ErrAbortHandler) // so that nobody takes the file for a whole one
	}
}

// largest is how many bytes are saved of an array whose elements repeat others. Such an array needs little memory, so nothing else bounds its
// file, and a browser begins to save it without a question. No more than 64 GiB of it were meant.
const largest = 64 << 30

// tooLarge refuses arrays that would fill a disk, of elements that lie in far less memory.
func tooLarge(v *core.View) error {
	l := v.Layout()
	if lo, hi := l.Span(); l.NBytes() <= largest || l.NBytes() <= int64(hi-lo) {
		return nil
	}
	return &core.Error{
		Op: "save", Object: v.Name(), Kind: core.ErrLayout,
		Err:    fmt.Errorf("its elements repeat others and are %s in all; at most %s are saved", render.Size(l.NBytes()), render.Size(largest)),
		Remedy: "save the array that it was made of (numpy.broadcast_to), or a part of it",
	}
}

// statusOf is the status of an answer that has no file.
func statusOf(err error) int {
	switch core.Category(err) {
	case core.Category(core.ErrNotFound):
		return http.StatusNotFound
	case core.Category(core.ErrUnavailable):
		return http.StatusServiceUnavailable
	}
	return http.StatusUnprocessableEntity // it is no array, or none of which there are such files
}

// begun knows whether something was written.
type begun struct {
	w *bufio.Writer
	n int
}

func (b *begun) Write(p []byte) (int, error) {
	n, err := b.w.Write(p)
	b.n += n
	return n, err
}

// fileName makes an array's name one of a file.
func fileName(name string) string {
	plain := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, name)
	return strings.Trim(plain, "_.")
}

// csvPiece is how many elements become text at once.
const csvPiece = 1 << 12

// writeCSV writes a line for each row of the last axis, and for each element of an array of one axis. Rows of arrays of more
// than two axes begin with the indices of the others.
func writeCSV(ctx context.Context, w io.Writer, v *core.View) error {
	switch {
	case v.Rank() == 0:
		texts, err := render.Elements(ctx, v, render.Exact)
		if err == nil {
			_, err = io.WriteString(w, texts[0]+"\n")
		}
		return err
	case v.Rank() > 1:
		return writeRows(ctx, w, v, v.Rank() > 2, nil)
	case v.Len() == 0:
		return nil
	}
	return writeRow(ctx, w, v, nil, "\n")
}

// writeRows writes what is below an index, which stands before each row if it is asked for.
func writeRows(ctx context.Context, w io.Writer, v *core.View, indexed bool, index []string) error {
	if v.Rank() == 1 {
		if !indexed {
			index = nil
		}
		return writeRow(ctx, w, v, index, ",")
	}
	for i := range v.Dim(0) {
		part, err := v.Select(0, i)
		if err != nil {
			return err
		}
		err = writeRows(ctx, w, part, indexed, append(index[:len(index):len(index)], strconv.Itoa(i)))
		_ = part.Close() // derived
		if err != nil {
			return err
		}
	}
	return nil
}

// writeRow writes the elements along one axis behind an index. However many there are, few of them are texts at once.
func writeRow(ctx context.Context, w io.Writer, v *core.View, index []string, between string) error {
	before := ""
	for from := 0; from == 0 || from < v.Len(); from += csvPiece {
		part, err := v.Sub(0, from, min(from+csvPiece, v.Len()))
		if err != nil {
			return err
		}
		texts, err := render.Elements(ctx, part, render.Exact)
		_ = part.Close() // derived
		if err == nil {
			_, err = io.WriteString(w, before+strings.Join(append(index[:len(index):len(index)], texts...), between))
		}
		if err != nil {
			return err
		}
		index, before = nil, between
	}
	_, err := io.WriteString(w, "\n")
	return err
}
