package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/ndbridge/ndbridge/internal/wire"
)

var manuals = flag.String("manuals", "", "write the manual pages and the completions of the shells into this folder; their date is SOURCE_DATE_EPOCH")

// TestManuals makes a page for every command and a completion for every shell. native/dist.sh keeps what it makes.
func TestManuals(t *testing.T) {
	t.Parallel()
	dir, date := *manuals, time.Unix(0, 0)
	if dir == "" {
		dir = t.TempDir()
	} else {
		seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
		if err != nil {
			t.Fatalf("SOURCE_DATE_EPOCH: %v", err)
		}
		date = time.Unix(seconds, 0)
	}
	date = date.UTC()
	root := newRoot(newEnviron(io.Discard, io.Discard))
	root.DisableAutoGenTag = true
	for name, write := range map[string]func(io.Writer) error{
		"ndbridge.bash": func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"_ndbridge":     root.GenZshCompletion,
		"ndbridge.fish": func(w io.Writer) error { return root.GenFishCompletion(w, true) },
	} {
		var text strings.Builder
		if err := write(&text); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "completions", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // as the pages
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil { //nolint:gosec // as the pages
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), "__complete") {
			t.Errorf("%s does not ask the command", name)
		}
	}
	escape(root)
	header := doc.GenManHeader{Section: "1", Date: &date, Source: "ndbridge " + wire.Release, Manual: "ndbridge"}
	man := filepath.Join(dir, "man")
	if err := os.MkdirAll(man, 0o755); err != nil { //nolint:gosec // for everybody to read
		t.Fatal(err)
	}
	if err := doc.GenManTree(root, &header, man); err != nil {
		t.Fatal(err)
	}
	said := newRoot(newEnviron(io.Discard, io.Discard))
	for _, cmd := range append(said.Commands(), said) {
		checkPage(t, man, cmd, date)
	}
}

// escape lets Markdown, which doc takes texts for, show them as they are. Flags mark their values with backquotes.
func escape(commands ...*cobra.Command) {
	literal := strings.NewReplacer("_", `\_`, "*", `\*`, "<", `\<`)
	for _, cmd := range commands {
		cmd.Short, cmd.Long = literal.Replace(cmd.Short), literal.Replace(cmd.Long)
		cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = literal.Replace(f.Usage) })
		escape(cmd.Commands()...)
	}
}

// checkPage checks that a command's page says everything that its help says, and nothing in Markdown.
func checkPage(t *testing.T, dir string, cmd *cobra.Command, date time.Time) {
	t.Helper()
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
	page, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Error(err)
		return
	}
	text := words(string(page))
	wanted := []string{cmd.Short, cmd.Long}
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) { wanted = append(wanted, "--"+f.Name, f.Usage) })
	for _, want := range wanted {
		if !strings.Contains(text, words(want)) {
			t.Errorf("%s lacks %q", name, want)
		}
	}
	if title := fmt.Sprintf(`.TH "%s" "1" "%s" "ndbridge %s"`, strings.ToUpper(strings.TrimSuffix(name, ".1")), date.Format("Jan 2006"), wire.Release); !strings.Contains(string(page), title) {
		t.Errorf("%s lacks %s", name, title)
	}
}

// words gives the words of a page or of a help text, without how they are set.
func words(text string) string {
	text = regexp.MustCompile(`(?m)^\.(PP|RS|RE|EX|EE|TP|IP|SH)\b.*$|\\f[BIRP]|[*`+"`"+`]`).ReplaceAllString(text, " ")
	text = strings.NewReplacer(`\-`, "-", `\(dq`, `"`, `\(aq`, `'`, `\&`, "", `\\`, `\`).Replace(text)
	return strings.Join(strings.Fields(text), " ")
}
