package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/native"
	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/running"
	"github.com/ndbridge/ndbridge/internal/wire"
)

func newVersion(env *environ) *cobra.Command {
	heap := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and where plugins are found",
		Args:  noArguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: env.command(func(*cobra.Command, []string) error {
			if heap {
				return printHeap(env)
			}
			return printVersion(env)
		}),
	}
	cmd.Flags().BoolVar(&heap, "heap", false, "print only the path of the shared heap's library, for LD_PRELOAD")
	return cmd
}

// printHeap prints where the shared heap is that programs get.
func printHeap(env *environ) error {
	path, err := heapFile("version")
	if err == nil {
		_, err = fmt.Fprintln(env.stdout, path)
	}
	return err
}

// heapFile finds the shared heap that programs get, for the command op.
func heapFile(op string) (string, error) {
	host, err := hostplugin.New(hostplugin.Config{})
	if err != nil {
		return "", err
	}
	dirs := host.LibDirs()
	if err := host.Close(); err != nil {
		return "", err
	}
	if dir, err := native.Dir(); err == nil {
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		path, err := filepath.Abs(filepath.Join(dir, running.HeapLibrary))
		if err == nil {
			_, err = os.Stat(path)
		}
		if err == nil {
			return path, nil
		}
	}
	return "", &core.Error{
		Op: op, Kind: core.ErrNotFound, Err: errors.New("there is no shared heap in any of the places that 'ndbridge version' lists"),
		Remedy: "set NDBRIDGE_LIB to a directory that holds it",
	}
}

func printVersion(env *environ) error {
	host, err := hostplugin.New(hostplugin.Config{})
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(env.stdout, 0, 0, 2, ' ', 0)
	line := func(key, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", key, prose.Line(fmt.Sprintf(format, args...))) // Flush has the error
	}
	line("ndbridge", "%s", wire.Release)
	line("protocol", "%d", wire.ProtocolVersion)
	line("go", "%s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for i, dir := range host.LibDirs() {
		key := ""
		if i == 0 {
			key = "libraries"
		}
		line(key, "%s%s", dir, found(dir))
	}
	if dir, err := native.Dir(); err == nil {
		line("embedded", "%s%s", dir, found(dir))
	} else {
		line("embedded", "%v", err)
	}
	return errors.Join(w.Flush(), host.Close())
}

// found says which of our libraries lie in a directory.
func found(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return " (not there)"
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, "ndbridge-") || strings.HasPrefix(name, "libndbridge-") && filepath.Ext(name) == ".so" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return " (holds none)"
	}
	slices.Sort(names)
	return ": " + strings.Join(names, ", ")
}
