// Package locate finds the files that a program is made of. Its errors are the user's to mend: they are
// core.Errors of kind core.ErrConfig that say how, and lack only the program's name.
package locate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/internal/shipped"
	"github.com/ndbridge/ndbridge/internal/suggest"
)

func fail(remedy, format string, args ...any) error {
	return &core.Error{Kind: core.ErrConfig, Err: fmt.Errorf(format, args...), Remedy: remedy}
}

// cause drops the operation and the path from a file error.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// Dir checks a working directory; "" is the host's own.
func Dir(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail("correct dir", "the working directory %s does not exist", dir)
	case err != nil:
		return fail("correct dir", "the working directory cannot be used: %w", err)
	case !info.IsDir():
		return fail("correct dir", "the working directory %s is not a directory", dir)
	}
	return nil
}

// Plugin gives the file of a plugin: name itself if it is a path, which is one with a slash, or the first
// ndbridge-NAME.so in dirs, which is ndbridge-NAME for an ordinary executable.
func Plugin(name string, library bool, dirs []string) (string, error) {
	if strings.Contains(name, "/") {
		info, err := os.Stat(name)
		switch {
		case err != nil:
			return "", fail("correct plugin, or build it", "the plugin %s cannot be used: %w", name, cause(err))
		case info.IsDir():
			return "", fail("correct plugin", "the plugin %s is a directory", name)
		}
		return name, nil
	}
	suffix := ""
	if library {
		suffix = ".so"
	}
	file, present := shipped.Find(name, suffix, dirs)
	if file != "" {
		return filepath.Abs(file)
	}
	remedy := suggest.Remedy(name, slices.Values(present),
		"set NDBRIDGE_LIB to the directory that holds it, or plugin to its path")
	return "", fail(remedy, "the plugin %q (ndbridge-%s%s) is not in %s", name, name, suffix, strings.Join(dirs, ", "))
}

// Script checks that Python can run a path: a file, or a directory with a main module.
func Script(script string) error {
	info, err := os.Stat(script)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		var scripts []string
		if files, err := filepath.Glob(filepath.Join(filepath.Dir(script), "*.py")); err == nil {
			for _, f := range files {
				scripts = append(scripts, filepath.Base(f))
			}
		}
		return fail(suggest.Remedy(filepath.Base(script), slices.Values(scripts), "set script to a file that exists"),
			"the script %s does not exist", script)
	case err != nil:
		return fail("set script to a file that can be read", "the script cannot be used: %w", err)
	case info.IsDir():
		if _, err := os.Stat(filepath.Join(script, "__main__.py")); err != nil {
			return fail("name a file in it, or set module instead",
				"the script %s is a directory without a __main__.py", script)
		}
	}
	return nil
}
