//go:build cuda

package gpu

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAvailableSaysWhyNot(t *testing.T) {
	t.Parallel()
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "libcuda.so.1"), []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, env, category string
		says                []string
		driver              bool
	}{
		{
			"no driver", "LD_LIBRARY_PATH=" + broken, "unsupported operation",
			[]string{"cuInit: CUDA_ERROR_STUB_LIBRARY (34)", "libcuda.so.1", "; install the NVIDIA driver"},
			true,
		},
		{
			"an old driver", "CUDASIM_FAULTS=version=11080", "incompatible version",
			[]string{"expected a driver for CUDA 12.0 or newer, got one for CUDA 11.8", "; update the NVIDIA driver"},
			false,
		},
		{
			"no device", "CUDASIM_DEVICES=0", "unsupported operation",
			[]string{"device", "; check CUDA_VISIBLE_DEVICES"},
			true,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := child(t, test.env)
			if s.Category != test.category || s.Driver != test.driver || len(s.Devices) != 0 {
				t.Errorf("got %+v, want category %q and no devices", s, test.category)
			}
			for _, want := range test.says {
				if !strings.Contains(s.Text, want) {
					t.Errorf("%q does not say %q", s.Text, want)
				}
			}
		})
	}
}

func TestDevicesSayWhatTheyCan(t *testing.T) {
	t.Parallel()
	all := Device{
		IPC: true, VMM: true, Pools: true, StreamMemOps: true, Registration: true, ReadOnlyRegistration: true,
	}
	for fault, lack := range map[string]func(*Device){
		"":           func(*Device) {},
		"noipc":      func(d *Device) { d.IPC = false },
		"noexport":   func(d *Device) { d.VMM, d.Pools = false, false },
		"nowords":    func(d *Device) { d.StreamMemOps = false },
		"noregister": func(d *Device) { d.Registration = false },
	} {
		t.Run("fault "+fault, func(t *testing.T) {
			t.Parallel()
			s := child(t, "CUDASIM_FAULTS="+fault, "CUDASIM_DEVICES=2")
			if s.Text != "" || !s.Active || len(s.Devices) != 2 {
				t.Fatalf("got %+v, want two devices", s)
			}
			want := all
			lack(&want)
			for i, d := range s.Devices {
				if d.Index != i || d.Name == "" || d.Memory <= 0 || d.ComputeCapability[0] <= 0 {
					t.Errorf("device %d is not described: %+v", i, d)
				}
				can := Device{
					IPC: d.IPC, VMM: d.VMM, Pools: d.Pools, StreamMemOps: d.StreamMemOps,
					Registration: d.Registration, ReadOnlyRegistration: d.ReadOnlyRegistration,
				}
				if can != want {
					t.Errorf("device %d can %+v, want %+v", i, can, want)
				}
			}
			if s.Devices[0].UUID == s.Devices[1].UUID {
				t.Errorf("both devices are %v", s.Devices[0].UUID)
			}
		})
	}
}
