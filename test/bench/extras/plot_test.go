package main

import (
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPicture(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "result.json"), filepath.Join(dir, "result.png")
	for _, test := range []struct {
		report string
		ok     bool
	}{
		{`{"rows":[{"way":"ndbridge","framework":"numpy","bytes":4096,"callers":1,"p50_ns":2000,"p99_ns":5000},
			{"way":"ndbridge","framework":"numpy","bytes":1048576,"callers":1,"p50_ns":2100,"p99_ns":5000},
			{"way":"pickle","framework":"numpy","bytes":4096,"p50_ns":90000,"p99_ns":100000}]}`, true},
		{`{"rows":[{"way":"bare mailbox","p50_ns":2000,"p99_ns":5000}]}`, true},
		{`{`, false},
	} {
		if err := os.WriteFile(from, []byte(test.report), 0o600); err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		if err := draw(from, to, &said); (err == nil) != test.ok || (said.Len() > 0) != strings.Contains(test.report, "mailbox") {
			t.Errorf("draw = %v for %s, and says %q", err, test.report, said.String())
		}
	}
	file, err := os.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := png.Decode(file); err != nil {
		t.Errorf("not a picture: %v", err)
	}
}
