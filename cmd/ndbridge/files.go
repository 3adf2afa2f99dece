package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/ndbridge/ndbridge/bridges/npy"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/pieces"
	"github.com/ndbridge/ndbridge/internal/render"
)

// placeholder stands in the name of a file for that of the array.
const placeholder = "{name}"

// files holds the flags that say where to write arrays.
type files struct {
	npy, raw, png string
	pngSize       int
}

func (f *files) define(flags *pflag.FlagSet) {
	flags.StringVar(&f.npy, "npy", "", "write the array to this .npy `file`; "+placeholder+" in it stands for the array's name")
	flags.StringVar(&f.raw, "raw", "", "write the elements to this `file`, row by row and nothing else")
	flags.StringVar(&f.png, "png", "", "draw the array to this .png `file`")
	flags.IntVar(&f.pngSize, "png-size", render.DefaultSize, "the largest width and height of the picture; larger arrays are averaged; 0 draws every element")
}

// check refuses files that one array would take from another.
func (f *files) check(all []wanted) error {
	if f.pngSize < 0 {
		return usagef("--png-size must not be negative")
	}
	for flag, file := range map[string]string{"npy": f.npy, "raw": f.raw, "png": f.png} {
		if file == "" {
			continue
		}
		if everything := len(all) == 1 && all[0].name == ""; (len(all) > 1 || everything) && !strings.Contains(file, placeholder) {
			return usagef("--%s %s: for several arrays the name of the file must contain %s", flag, file, placeholder)
		}
		seen := map[string]string{}
		for _, w := range all {
			name := fileName(file, w.label)
			if other, taken := seen[name]; taken && w.label != other {
				return usagef("--%s: %s and %s would both be written to %s", flag, other, w.label, name)
			}
			seen[name] = w.label
		}
	}
	return nil
}

// fileName puts an array's name into the name of a file, without what means something there.
func fileName(file, name string) string {
	plain := strings.Map(func(r rune) rune {
		if strings.ContainsRune("/\\[]\"'{}:*?<>|", r) || !unicode.IsGraphic(r) {
			return '_'
		}
		return r
	}, name)
	return strings.ReplaceAll(file, placeholder, strings.Trim(plain, "_"))
}

// write writes the files that are asked for, and gives a line about each.
func (f *files) write(ctx context.Context, label string, v *core.View) (notes []string, err error) {
	size := cmp.Or(f.pngSize, -1)
	for _, out := range []struct {
		file string
		to   func(io.Writer) (string, error)
	}{
		{f.npy, func(w io.Writer) (string, error) { return npy.Write(ctx, w, v) }},
		{f.raw, func(w io.Writer) (string, error) { return "", pieces.Write(ctx, w, v) }},
		{f.png, func(w io.Writer) (string, error) { return "", render.PNG(ctx, w, v, render.PNGOptions{Size: size}) }},
	} {
		if out.file == "" {
			continue
		}
		name := fileName(out.file, label)
		note, err := writeFile(name, out.to)
		if err != nil {
			return notes, fileError(err, name, label)
		}
		if note != "" {
			note = " (" + note + ")"
		}
		notes = append(notes, name+note)
	}
	return notes, nil
}

// fileError says which file could not be written; errors about the array stay what they are.
func fileError(err error, name, label string) error {
	if core.Category(err) != "" {
		return err
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return &core.Error{
		Op: "write " + name, Object: label, Kind: core.ErrConfig, Err: err,
		Remedy: "name a file in a directory that exists, with room for it",
	}
}

// writeFile writes a file that is there as a whole or not at all. What is no regular file (a pipe, a
// terminal, a link) is written to as it is.
func writeFile(name string, write func(io.Writer) (string, error)) (note string, err error) {
	info, err := os.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			return "", err
		}
		return writeTo(f, write)
	}
	temporary := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.%d.tmp", filepath.Base(name), os.Getpid()))
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return "", err
	}
	note, err = writeTo(f, write)
	if err == nil && info != nil {
		err = os.Chmod(temporary, info.Mode().Perm())
	}
	if err == nil {
		err = os.Rename(temporary, name)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(temporary))
	}
	return note, nil
}

func writeTo(f *os.File, write func(io.Writer) (string, error)) (note string, err error) {
	out := bufio.NewWriterSize(f, 1<<16)
	note, err = write(out)
	if err == nil {
		err = out.Flush()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return note, err
}
