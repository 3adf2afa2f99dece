package hostplugin

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"text/template"

	"github.com/ndbridge/ndbridge/internal/golden"
)

// referencePage is the reference of the configuration file. TestReferenceIsCurrent makes it of the template and of the
// descriptions below.
const referencePage = "../docs/hcl.md"

// describedBlock is one kind of block.
type describedBlock struct {
	Name       string
	Attributes []describedAttribute
}

// describedAttribute is one attribute of a block. The texts are Markdown.
type describedAttribute struct {
	Name    string
	Type    string // one of the page's section "Types"
	Default string // "" if there is none
	Text    string // what it means: a part of a sentence, or sentences, without the last full stop
}

// describedBlocks describes all blocks, in the order of the page.
func describedBlocks() []describedBlock {
	return []describedBlock{
		{"program", describedProgram()},
		{"adapter", []describedAttribute{
			{"copy", "string", "`\"if-needed\"`", "what happens to memory that cannot be shared, if the request does not say. " +
				"`\"if-needed\"` copies it once, and the view says so. `\"never\"` makes it an error that wraps `core.ErrNotShared`"},
			{"sync", "string", "the adapter's own", "which work on a GPU a view waits for before its memory may be touched. " +
				"`\"device\"` waits for all work that the array's context was given until then. " +
				"`\"stream\"` waits for what the framework itself orders. JAX has `\"stream\"`, all others have `\"device\"`"},
		}},
		{"quirk", []describedAttribute{
			{"enabled", "bool", "`true`", "`false` switches the quirk off: the framework is taken at its word"},
			{"effect", "string", "the usual one, which the list names first", "what is done about the quirk, if the quirk has a choice. " +
				"It excludes `enabled = false`"},
		}},
	}
}

func describedProgram() []describedAttribute {
	return []describedAttribute{
		{"python", "path or name", "`\"python3\"`", "the interpreter. A name is looked up on `PATH`; if `env` has a `PATH`, on that one. " +
			"Nothing is installed into the interpreter"},
		{"script", "path", "", "the file to run, as `python script.py` does"},
		{"module", "string", "", "the module to run, as `python -m module` does"},
		{"args", "list", "none", "the arguments after the script or the module: `sys.argv[1:]`"},
		{"env", "map", "none", "environment variables, set on top of the host's own. Names that begin with `NDBRIDGE_` or `PLUGIN_` are reserved"},
		{"dir", "path", "the host's", "the working directory"},
		{"plugin", "path or name", "`\"all\"`", "what runs inside the program. A Python program takes a plugin that comes with ndbridge, " +
			"`\"all\"` or that of one framework (`\"numpy\"`, `\"torch\"`, ...), or the path of one of your own ([how](writing-an-adapter.md)). " +
			"A name is looked up in the directories of `Config.LibDirs`, in `$NDBRIDGE_LIB`, in `lib` beside the host's executable, " +
			"and in `../lib/ndbridge` from there. If `\"all\"` is in none of them, the host unpacks its own ([how](install.md))"},
		{"checksum", "string", "not checked", "`\"sha256:\"` and 64 hexadecimal digits, of the plugin's file. " +
			"A program whose plugin has another checksum does not start"},
		{"shared_heap", "bool", "`true`", "whether the program's array libraries allocate from memory that the host can map. " +
			"Without it, arrays in the program's own memory are copied. Python programs only"},
		{"shared_heap_threshold", "size", "`\"64KiB\"`", "allocations of this size and more are shared; 4 KiB to 1 TiB. Python programs only"},
		{"shared_heap_libraries", "list", "none", "more libraries whose allocations are shared, besides those of the known frameworks: " +
			"parts of their file names, without a comma. `\"*\"` is every library. A first name that begins with `=` (`\"=libmine\"`) " +
			"replaces the list of known ones. Python programs only"},
		{"promote", "string", "`\"safe\"`", "when an array becomes shared that lived through a fork, or lies outside the heap ([forks.md](forks.md#promotion)): `\"safe\"` where no system call " +
			"of the program can fail by it, `\"always\"` also elsewhere, `\"never\"` copies such arrays. Python programs only"},
		{"mapped_files", "string", "`\"share\"`", "how arrays in files that the program has mapped (`np.memmap`, shared memory) reach the host: " +
			"`\"share\"` maps the file in the host, `\"copy\"` copies the array. " +
			"[SECURITY.md](../SECURITY.md) says what a truncated file does to a host that shares it"},
		{"handoff", "bool", "`true`", "whether the host asks for views through shared memory. With `false` everything goes by gRPC, which takes longer, " +
			"and `Source.Latest`, `Source.Next` and `Group.Next` are not supported"},
		{"handoff_spin", "duration", "`\"50us\"`", "how long host and program spin while they wait for each other, before they sleep; at most 10 ms. For the answer to a call with arrays on a GPU a host spins 500 µs at least. " +
			"With `\"0s\"` they sleep at once, which takes less CPU time and makes calls slower"},
		{"handoff_slots", "number", "`8`", "how many slots the mailbox has: how many requests for views can be under way at once through shared memory, 1 to 64"},
		{"workers", "number", "`16`", "how many calls of the program's functions can run at once ([calling.md](calling.md)), 1 to 64. " +
			"Each is a thread of the program's process, made when it is first needed. Without `handoff` nothing can be called"},
		{"arguments", "string", "`\"numpy\"`", "whose arrays the host's become as arguments of functions, and in `Session.Set`, where neither the function nor the host says it " +
			"([calling.md](calling.md#whose-arrays)): `\"numpy\"`, `\"torch\"`, `\"jax\"`, `\"cupy\"`, or `\"python\"` for objects of no framework"},
		{"on_stuck", "string", "`\"wait\"`", "what becomes of a function that still runs though the host does not wait for it any more " +
			"([calling.md](calling.md#errors-and-the-end-of-a-context)): `\"wait\"` leaves it its worker until it returns, `\"end\"` ends the program, or the session if the host has attached to the program"},
		{"stuck_timeout", "duration", "`\"5s\"`", "with `on_stuck = \"end\"`, how long such a function may run on; more than 0"},
		{"start_timeout", "duration", "`\"60s\"`", "from the start until the plugin answers; more than 0"},
		{"stop_timeout", "duration", "`\"5s\"`", "from the end of the session until what is left of the program is killed; more than 0. " +
			"A script that still runs gets a `KeyboardInterrupt` at the end of the session, and has this time to write what it has to write"},
	}
}

func describedTable(attributes []describedAttribute) string {
	var b strings.Builder
	b.WriteString("| attribute | type | default | what it is |\n| --- | --- | --- | --- |")
	for _, a := range attributes {
		fmt.Fprintf(&b, "\n| `%s` | %s | %s | %s |", a.Name, a.Type, a.Default, a.Text)
	}
	return b.String()
}

// TestReferenceIsCurrent holds that the page follows what it is made from. With -update it writes the page.
func TestReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	tables := make(map[string]string)
	for _, b := range describedBlocks() {
		tables[b.Name] = describedTable(b.Attributes)
	}
	page, err := template.New("hcl.md.tmpl").Option("missingkey=error").ParseFiles("testdata/hcl.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := page.Execute(&want, tables); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, referencePage, want.Bytes())
}

// TestAttributesAreDescribed holds that nothing is left empty but the default of what has none.
func TestAttributesAreDescribed(t *testing.T) {
	t.Parallel()
	for _, b := range describedBlocks() {
		for _, a := range b.Attributes {
			if a.Name == "" || a.Type == "" || a.Text == "" {
				t.Errorf("%s: %+v is not described", b.Name, a)
			}
		}
	}
}
