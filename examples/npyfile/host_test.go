package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// TestHost reads the arrays as the README says, with the host's own configuration.
func TestHost(t *testing.T) {
	t.Parallel()
	dir := npys(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config := `program "data" {
		plugin = "` + exe + `"
		args   = ["` + dir + `"]
		env    = { ` + pluginVariable + ` = "1" }
	}`
	path := filepath.Join(dir, "ndbridge.hcl")
	write(t, path, []byte(config))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	host, err := hostplugin.Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	}()
	data, err := host.Start(ctx, "data")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range coretest.Arrays() {
		v, err := data.View(ctx, a.Name)
		if err != nil {
			t.Error(err)
			continue
		}
		got := make([]byte, v.NBytes())
		if _, err := core.CopyBytes(got, v); err != nil || !bytes.Equal(got, a.Data) {
			t.Errorf("%s: values differ, %v", a.Name, err)
		}
		if v.Copied() || v.Writable() || v.Framework() != framework {
			t.Errorf("%s: copied %v, writable %v, framework %q", a.Name, v.Copied(), v.Writable(), v.Framework())
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := data.View(ctx, "missing"); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("View of a missing file = %v; want ErrNotFound", err)
	}
}
