package main

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin"
)

// TestJSON holds every key and value of what --json says.
func TestJSON(t *testing.T) {
	t.Parallel()
	r := on(t, "view", "program.py", "--json", "frame", "big", "batch[\"it's\"]", `batch['a "b"'][1]`, "arguments", "objects", "--", "one", "three")
	r.want(t, statusFailed, "", "| said on stdout")
	got := r.objects(t)
	want := []map[string]any{
		shared("frame", "uint8", []any{64., 96., 3.}, []any{288., 3., 1.}, 64*96*3),
		shared("big", "float64", []any{65536.}, []any{8.}, 65536*8),
		shared("batch[\"it's\"]", "float64", []any{5.}, []any{8.}, 40),
		shared(`batch['a "b"'][1]`, "int16", []any{3., 2.}, []any{2., 6.}, 12),
		shared("arguments", "opaque[20]", []any{2.}, []any{20.}, 40),
		{"name": "objects", "error": map[string]any{
			"category": "wrong dtype",
			"message":  "view program/objects: wrong dtype: the elements of dtype |O are pointers into the process",
			"remedy":   "convert the array to a numeric or fixed-width type with astype",
			"quirk":    "numpy.object-dtype",
		}},
	}
	for _, small := range []int{0, 2, 3, 4} { // less than the shared heap takes
		want[small]["route"], want[small]["copied"], want[small]["address_shared"] = "staged", true, false
		want[small]["reason"] = "below-threshold"
	}
	want[2]["read_only"] = true
	want[4]["tag"] = "<U5"
	if len(got) != len(want) {
		t.Fatalf("%d lines:\n%s", len(got), r.stdout)
	}
	for i := range want {
		if quirks, ok := got[i]["quirks"]; ok {
			list, isList := quirks.([]any)
			if !isList || slices.ContainsFunc(list, func(q any) bool { _, isText := q.(string); return !isText }) {
				t.Errorf("quirks %v are not a list of texts", quirks)
			}
			want[i]["quirks"] = quirks // the adapter's own tests say which
		}
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("got  %v\nwant %v", got[i], want[i])
		}
	}
}

// shared is what is said of an array of the shared heap.
func shared(name, dtype string, shape, strides []any, nbytes int) map[string]any {
	return map[string]any{
		"name": name, "framework": "numpy", "dtype": dtype, "tag": "", "shape": shape, "strides": strides,
		"device": "cpu", "read_only": false, "route": "shared-heap", "copied": false, "reason": "",
		"quirks": []any{}, "nbytes": float64(nbytes), "address_shared": true,
	}
}

// TestJSONOfFewElements holds that empty lists are lists.
func TestJSONOfFewElements(t *testing.T) {
	t.Parallel()
	r := on(t, "view", "kinds.py", "--json", "scalar", "empty")
	r.want(t, statusOK, `"shape":[],"strides":[],`, "")
	r.want(t, statusOK, `"shape":[0,3],"strides":[`, "")
	r.want(t, statusOK, `"route":"empty","copied":false,"reason":"",`, "")
}

// TestJSONOfErrors holds that whatever fails is an object on standard output, for each name.
func TestJSONOfErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	raises := file(t, dir, "raises.py", "import numpy as np\nframe = np.zeros(3)\nframe[7]\n")
	exits := file(t, dir, "exits.py", "raise SystemExit(3)\n")
	config := file(t, dir, "wrong.hcl", "program \"p\" {\n  scrip = \"p.py\"\n  script = \"p.py\"\n}\n")
	_, mistakes := hostplugin.Load(config)
	if mistakes == nil || !strings.HasPrefix(mistakes.Error(), config+":2,3-8: ") {
		t.Fatalf("the mistake is %v", mistakes)
	}
	for name, c := range map[string]struct {
		args                      []string
		category, message, remedy string
	}{
		"no array":       {[]string{"--script", "testdata/program.py", "--python", python(t)}, "not found", "view program/frmae: not found: the program has no global variable, has published nothing, and runs no function with a variable, of that name; looked among the global variables of __main__", `did you mean "frame"?`},
		"no script":      {[]string{"--script", dir + "/raise.py", "--python", python(t)}, "bad configuration", "view raise/frmae: bad configuration: the script " + dir + "/raise.py does not exist", `did you mean "raises.py"?`},
		"no interpreter": {[]string{"--script", raises, "--python", dir + "/python"}, "bad configuration", "view raises/frmae: bad configuration: the interpreter cannot be used: " + dir + "/python does not exist", "set python to the interpreter's path"},
		"not Python":     {[]string{"--script", raises, "--python", "/bin/true"}, "bad configuration", "view raises/frmae: bad configuration: /bin/true is not a Python interpreter that works: it exited with status 0", "set python to the interpreter that runs your script"},
		"raises":         {[]string{"--script", raises, "--python", python(t)}, "python error", "view raises/frmae: python error: IndexError: index 7 is out of bounds for axis 0 with size 3", ""},
		"exits":          {[]string{"--script", exits, "--python", python(t)}, "unavailable", "view exits/frmae: unavailable: the program exited with status 3", ""},
		"configuration":  {[]string{"-c", config}, "bad configuration", mistakes.Error(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := command(t, append([]string{"view", "--json", "frmae", "frmae"}, c.args...)...)
			want := map[string]any{"name": "frmae", "error": map[string]any{
				"category": c.category, "message": c.message, "remedy": c.remedy, "quirk": "",
			}}
			got := r.objects(t)
			if r.status != statusFailed || len(got) != 2 || !reflect.DeepEqual(got[0], want) || !reflect.DeepEqual(got[1], want) {
				t.Errorf("status %d, got\n%swant %v", r.status, r.stdout, want)
			}
		})
	}
}

// TestListDeep holds what ls --deep says.
func TestListDeep(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "tree.py")
	if err := os.WriteFile(script, []byte(`
import numpy as np
class Model: pass
model = Model()
model.big, model.layers = np.zeros(1 << 16), [{"w": np.ones(3)}, {"w": np.ones(4)}]
same = model.big
model.me = model
model.lr, model.on, steps, worst = 0.5, True, 2**62 + 1, float("nan")
`), 0o600); err != nil {
		t.Fatal(err)
	}
	ls := func(args ...string) result {
		return command(t, append([]string{"ls", "--deep", "--script", script, "--python", python(t), "--patience", "1m"}, args...)...)
	}
	ls().want(t, statusOK, ""+
		"model.layers[0][\"w\"]  numpy  float64  3      24 bytes  copied: below-threshold\n"+
		"model.layers[1][\"w\"]  numpy  float64  4      32 bytes  copied: below-threshold\n"+
		"same                  numpy  float64  65536  512.0 KiB (524288 bytes)  shared  also model.big\n", "")
	ls("--limit", "2").want(t, statusOK, "and 1 more; --limit says how many are listed\n", "")
	ls("--numbers").want(t, statusOK, ""+
		"model.lr              python  float    -      0.5\n"+
		"steps                 python  int      -      4611686018427387905\n"+
		"worst                 python  float    -      nan\n", "")
	ls("--json", "--numbers").want(t, statusOK, `{"name":"model.lr","type":"float","value":0.5,"text":"0.5"}`+"\n"+
		`{"name":"steps","type":"int","value":4611686018427387905,"text":"4611686018427387905"}`+"\n"+`{"name":"worst","type":"float","value":null,"text":"nan"}`+"\n", "")
	variables := command(t, "ls", "--json", "--numbers", "--script", script, "--python", python(t), "--patience", "1m").objects(t)
	if n := len(variables); n != 3 || variables[0]["name"] != "same" || variables[1]["name"] != "steps" || variables[2]["name"] != "worst" {
		t.Errorf("the variables are %v", variables)
	}
	ls("--limit", "0").want(t, statusUsage, "", "--limit 0: it must be positive")
	objects := ls("--json", "--limit", "2").objects(t)
	if last := objects[len(objects)-1]; len(objects) != 3 || last["more"] != 1.0 || last["partial"] != false {
		t.Errorf("%v", objects)
	}
}

// TestList holds what ls says, to people and to programs.
func TestList(t *testing.T) {
	t.Parallel()
	r := on(t, "ls", "program.py", "--", "one")
	r.want(t, statusOK, ""+
		"arguments            numpy  <U3      1            12 bytes  copied: below-threshold\n"+
		"batch[\"a \\\"b\\\"\"][1]  numpy  int16    3 x 2        12 bytes  copied: below-threshold\n"+
		"big                  numpy  float64  65536        512.0 KiB (524288 bytes)  shared\n"+
		"frame                numpy  uint8    64 x 96 x 3  18.0 KiB (18432 bytes)  copied: below-threshold  also batch[\"a \\\"b\\\"\"][0]\n"+
		"frozen               numpy  float64  5            40 bytes  read-only  copied: below-threshold  also batch[\"it's\"]\n"+
		"objects              -      -        -            wrong dtype: the elements of dtype |O are pointers into the process\n"+
		"small                numpy  int16    2 x 3        12 bytes  copied: below-threshold  also batch[\"x\"]\n", "")
	r = on(t, "ls", "program.py", "--json")
	r.want(t, statusOK, "", "")
	keys := map[string][]string{
		"small":   {"device", "dtype", "framework", "name", "nbytes", "published", "read_only", "shape", "strides", "tag"},
		"objects": {"error", "name"},
	}
	for _, object := range r.objects(t) {
		name, _ := object["name"].(string)
		if want, ok := keys[name]; ok {
			delete(keys, name)
			if got := slices.Sorted(maps.Keys(object)); !slices.Equal(got, want) {
				t.Errorf("%s: keys %v, want %v", name, got, want)
			}
		}
	}
	if len(keys) > 0 {
		t.Errorf("not listed: %v\n%s", keys, r.stdout)
	}
	none := file(t, t.TempDir(), "none.py", "")
	command(t, "ls", "--script", none, "--python", python(t), "--patience", "1m").want(t, statusOK, "", "none has no arrays in global variables, and has published none; variables of functions are gone with them: look while it still runs, with less --patience, or publish them with ndbridge.publish\n")
	r = command(t, "ls", "--script", none+".py", "--python", python(t), "--json")
	r.want(t, statusFailed, `{"name":"","error":{"category":"bad configuration",`, "")
}
