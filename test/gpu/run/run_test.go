package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/test/gpu/report"
)

const printed = `=== RUN   TestTable
=== RUN   TestTable/torch
=== RUN   TestTable/torch/pool
    table_test.go:1: element 0 of 2 is 1, want 2
--- FAIL: TestTable (0.50s)
    --- FAIL: TestTable/torch (0.50s)
        --- FAIL: TestTable/torch/pool (0.20s)
=== RUN   TestOther
--- PASS: TestOther (0.01s)
=== RUN   TestTwoGPUs
    faults_test.go:9: needs two GPUs
--- SKIP: TestTwoGPUs (0.00s)
=== RUN   TestHangs
panic: test timed out after 1m0s
`

// TestResultsOfATest reads what a test binary prints, one whose last test never ended.
func TestResultsOfATest(t *testing.T) {
	want := map[string]string{
		"TestTable": "FAIL", "TestTable/torch": "FAIL", "TestTable/torch/pool": "FAIL", "TestOther": "PASS", "TestTwoGPUs": "SKIP",
		"TestHangs": "UNFINISHED",
	}
	tests := parseTests(printed, options{bundle: "/b", out: "/o"})
	if len(tests) != len(want) {
		t.Errorf("%d tests, want %d", len(tests), len(want))
	}
	for _, test := range tests {
		if test.Result != want[test.Name] {
			t.Errorf("%s: %s, want %s", test.Name, test.Result, want[test.Name])
		}
		if test.Name == "TestTable/torch/pool" && !strings.Contains(test.Output, "want 2") {
			t.Errorf("%s lost its output: %q", test.Name, test.Output)
		}
	}
	step := stepResult{Package: "test/gpu", Tests: tests, Error: "exit status 2"}
	section := sectionResult{Steps: []stepResult{step}}
	if n := section.count(); n.all != 4 || n.passed != 1 || n.skipped != 1 || section.passed() {
		t.Errorf("counted %+v, want 1 of 4, and 1 skipped", n)
	}
}

// TestRun runs a section whose tests are a script, and reads the report.
func TestRun(t *testing.T) {
	bundle, out := t.TempDir(), t.TempDir()
	folder := filepath.Join(bundle, "tests", "test", "gpu")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\ncat <<'EOF'\n" + printed + "EOF\n" +
		`echo '{"table":"A | B","fields":[{"name":"framework","value":"torch"},{"name":"route","value":"cuda-ipc"}]}' >>"$NDBRIDGE_TEST_REPORT"
echo "    $NDBRIDGE_TEST_PYTHON $NDBRIDGE_LIB"
exit 1
`
	if err := os.WriteFile(filepath.Join(folder, "gpu.test"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	var printedBy strings.Builder
	err := run(t.Context(), []string{"-bundle", bundle, "-out", out, "-python", "python3", "-command", "run.sh OUT table", "table"}, &printedBy)
	if err == nil {
		t.Error("a failed test made no error")
	}
	text, err := os.ReadFile(filepath.Join(out, "gpu.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| framework | route |", "| torch | cuda-ipc |", "| test/gpu TestTable/torch/pool | FAIL | 0.20s |",
		"| test/gpu TestHangs | UNFINISHED |", "want 2", "`run.sh OUT table`", "| 4 | 1 | 2 | 1 |", "exit status 1", "needs two GPUs",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	for _, where := range []string{bundle, out} {
		if strings.Contains(string(text), where) {
			t.Errorf("the report tells of %s", where)
		}
	}
	if _, err := os.Stat(filepath.Join(out, "gpu.json")); err != nil {
		t.Error(err)
	}
}

func TestUnknownSection(t *testing.T) {
	if _, err := parse([]string{"nothing"}); err == nil || !strings.Contains(err.Error(), "table") {
		t.Errorf("an unknown section: %v, want an error that lists those that there are", err)
	}
}

func TestCellsOfATable(t *testing.T) {
	var b strings.Builder
	rows := []report.Row{{Table: "T", Fields: []report.Field{{Name: "a", Value: "x|y\nz"}}}, {Table: "T", Fields: []report.Field{{Name: "b", Value: "2"}}}}
	if err := report.WriteTables(&b, rows); err != nil {
		t.Fatal(err)
	}
	want := "\n### T\n\n| a | b |\n| --- | --- |\n| x\\|y z |  |\n|  | 2 |\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
