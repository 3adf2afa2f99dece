package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// lookAtModel is the README's example.
func lookAtModel(ctx context.Context, data *hostplugin.Session) error {
	weights, err := data.View(ctx, "weights") // weights.npy
	if err != nil {
		return err
	}
	defer weights.Close()
	bias, err := data.View(ctx, "model.bias") // bias.npy in model.npz
	if err != nil {
		return err
	}
	defer bias.Close()
	if weights.Copied() || weights.Len() == 0 || bias.Len() == 0 {
		return fmt.Errorf("weights %v by %v, bias %v", weights.Shape(), weights.Route(), bias.Shape())
	}
	return nil
}

// TestHost reads the arrays as the README says, with the configuration beside it.
func TestHost(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("NPYFILE", exe)
	t.Setenv(pluginVariable, "1")
	config, err := os.ReadFile("ndbridge.hcl")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ndbridge.hcl"), config)
	arrays := filepath.Join(dir, "arrays")
	if err := os.Rename(npys(t), arrays); err != nil {
		t.Fatal(err)
	}
	some := npy(t, coretest.Arrays()[0])
	write(t, filepath.Join(arrays, "weights.npy"), some)
	write(t, filepath.Join(arrays, "model.npz"), archive(t, zip.Store, 64, map[string][]byte{"bias.npy": some}))
	t.Chdir(dir)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	host, err := hostplugin.Open(ctx, "ndbridge.hcl")
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
	if err := lookAtModel(ctx, data); err != nil {
		t.Error(err)
	}
	for _, a := range coretest.Arrays() {
		v, err := data.View(ctx, a.Name)
		if err != nil {
			t.Error(err)
			continue
		}
		got := make([]byte, v.NBytes())
		if _, err := core.CopyBytes(t.Context(), got, v); err != nil || !bytes.Equal(got, a.Data) {
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
