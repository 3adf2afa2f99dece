package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/prose"
)

// fail makes an error that the user can mend. It lacks the program's name.
func fail(remedy, format string, args ...any) error {
	return &core.Error{Kind: core.ErrConfig, Err: fmt.Errorf(format, args...), Remedy: remedy}
}

// CheckDir checks a working directory; "" is the host's own. The errors of this function, CheckScript and FindPlugin are
// of type *core.Error and kind core.ErrConfig. They say how the user can mend them, and lack the program's name.
func CheckDir(dir string) error {
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

// FindPlugin returns the file of a plugin: name itself if it is a path (it has a slash), else the first ndbridge-NAME.so in
// dirs, or ndbridge-NAME for an ordinary executable.
func FindPlugin(name string, library bool, dirs []string) (string, error) {
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
	file, present := findIn(name, suffix, dirs)
	if file != "" {
		return filepath.Abs(file)
	}
	remedy := prose.Remedy(name, slices.Values(present),
		"set NDBRIDGE_LIB to the directory that holds it, or plugin to its path")
	return "", fail(remedy, "the plugin %q (ndbridge-%s%s) is not in %s", name, name, suffix, strings.Join(dirs, ", "))
}

// CheckScript checks that Python can run the path: a file, or a directory with a main module.
func CheckScript(script string) error {
	info, err := os.Stat(script)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		var scripts []string
		if files, err := filepath.Glob(filepath.Join(filepath.Dir(script), "*.py")); err == nil {
			for _, f := range files {
				scripts = append(scripts, filepath.Base(f))
			}
		}
		return fail(prose.Remedy(filepath.Base(script), slices.Values(scripts), "set script to a file that exists"),
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

// findIn looks up the file of a plugin, ndbridge-NAME and a suffix, in directories. If there is none, it
// gives the names of the plugins that are there.
func findIn(name, suffix string, dirs []string) (file string, present []string) {
	for _, dir := range dirs {
		file := filepath.Join(dir, "ndbridge-"+name+suffix)
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			return file, nil
		}
		files, err := filepath.Glob(filepath.Join(dir, "ndbridge-*"+suffix))
		if err != nil {
			continue // a directory with a '[' in its name: there is just no suggestion
		}
		for _, f := range files {
			present = append(present, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), "ndbridge-"), suffix))
		}
	}
	return "", present
}
