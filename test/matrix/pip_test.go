package main

import "testing"

func TestPipReason(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, out, version, want string }{
		{
			name: "no wheel for this Python", version: "2.1.2",
			out: "Looking in indexes: https://example.com/simple\n" +
				"ERROR: Could not find a version that satisfies the requirement torch==2.1.2 (from versions: 2.2.0, 2.2.1, 2.3.0, 2.15.0)\n" +
				"ERROR: No matching distribution found for torch==2.1.2\n",
			want: "No matching distribution found for torch==2.1.2 (from versions: 2.2.0, …, 2.15.0)",
		}, {
			name: "refused by its metadata", version: "2.4.0",
			out: "ERROR: Ignored the following versions that require a different python version: " +
				"1.2.4.0 Requires-Python >=3.7; 2.2.0 Requires-Python <3.15,>=3.10; 2.4.0 Requires-Python <3.16,>=3.10\n" +
				"ERROR: Could not find a version that satisfies the requirement nvidia-dali-cuda130==2.4.0 (from versions: none)\n" +
				"ERROR: No matching distribution found for nvidia-dali-cuda130==2.4.0\n",
			want: "No matching distribution found for nvidia-dali-cuda130==2.4.0 (from versions: none); " +
				"Requires-Python <3.16,>=3.10",
		}, {
			name: "no network", version: "2.4.0",
			out: "ERROR: Could not install packages due to an OSError: connection refused\n",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			reason, ok := pipReason(tt.out, tt.version)
			if reason != tt.want || ok != (tt.want != "") {
				t.Errorf("%q, want %q", reason, tt.want)
			}
		})
	}
}

func TestOffered(t *testing.T) {
	t.Parallel()
	const out = "ERROR: Could not find a version that satisfies the requirement numpy<0 (from versions: 2.0.1, 2.0.2)\n" +
		"ERROR: No matching distribution found for numpy<0\n"
	if got := offered(out); len(got) != 2 || got[0] != "2.0.1" || got[1] != "2.0.2" {
		t.Errorf("%q", got)
	}
	if got := offered("ERROR: No matching distribution found for numpy<0\n"); got != nil {
		t.Errorf("%q", got)
	}
}
