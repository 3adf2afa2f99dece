package main

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/ndbridge/ndbridge/bridges/npy"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/prose"
)

// write writes the arrays of a result.
func (c *caller) write(ctx context.Context, name string, v any, views []*core.View) error {
	refuse := func(remedy string) error {
		return &core.Error{
			Op: "write " + c.out, Object: name, Kind: core.ErrUnsupported,
			Err: fmt.Errorf("the function has returned %d arrays", len(views)), Remedy: remedy,
		}
	}
	many := strings.HasSuffix(c.out, ".npz")
	switch {
	case len(views) == 0:
		return refuse("leave --out away")
	case len(views) > 1 && !many:
		return refuse("name an .npz file")
	}
	note, err := writeFile(c.out, func(w io.Writer) (string, error) {
		if many {
			return writeNPZ(ctx, w, v, views)
		}
		return npy.Write(ctx, w, views[0])
	})
	if err != nil {
		return fileError(err, c.out, name)
	}
	if note != "" {
		note = " (" + note + ")"
	}
	_, err = fmt.Fprintf(c.env.stderr, "wrote %s\n", prose.Line(c.out+note))
	return err
}

// writeNPZ writes arrays as numpy.savez does.
func writeNPZ(ctx context.Context, w io.Writer, v any, views []*core.View) (note string, err error) {
	keys := make(map[*core.View]string)
	if d, ok := v.(map[string]any); ok {
		for key, item := range d {
			if view, ok := item.(*core.View); ok {
				keys[view] = key
			}
		}
	}
	z := zip.NewWriter(w)
	var notes []string
	for i, view := range views {
		key, ok := keys[view]
		if !ok {
			key = "arr_" + strconv.Itoa(i)
		}
		f, err := z.CreateHeader(&zip.FileHeader{Name: key + ".npy", Method: zip.Store})
		if err != nil {
			return "", err
		}
		note, err := npy.Write(ctx, f, view)
		if err != nil {
			return "", err
		}
		if note != "" {
			notes = append(notes, key+": "+note)
		}
	}
	return strings.Join(notes, "; "), z.Close()
}

// numbers makes JSON's numbers ints, as far as they are, and floats.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, ok := new(big.Int).SetString(v.String(), 10); ok {
			return n
		}
		if f, err := v.Float64(); err == nil || errors.Is(err, strconv.ErrRange) {
			return f
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = numbers(v[key])
		}
	}
	return v
}

// plain gives what JSON can say of a value: text for what it cannot.
func plain(v any) any {
	switch v := v.(type) {
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	case complex128:
		return strings.Trim(strconv.FormatComplex(v, 'g', -1, 128), "()")
	case []any:
		return plainList(v)
	case contract.Tuple:
		return plainList(v)
	case contract.Set:
		return plainList(v)
	case contract.FrozenSet:
		return plainList(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = plain(item)
		}
		return out
	case map[any]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[fmt.Sprint(key)] = plain(item)
		}
		return out
	case contract.Dict:
		out := make(map[string]any, len(v))
		for _, pair := range v {
			out[fmt.Sprint(plain(pair.Key))] = plain(pair.Value)
		}
		return out
	case contract.Record:
		out := make(map[string]any, len(v.Fields))
		for _, field := range v.Fields {
			out[field.Name] = plain(field.Value)
		}
		return out
	}
	return v
}

func plainList(v []any) []any {
	out := make([]any, len(v))
	for i := range v {
		out[i] = plain(v[i])
	}
	return out
}
