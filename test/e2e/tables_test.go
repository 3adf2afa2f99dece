package e2e

import (
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// eachPandas runs a test with an old and a new pandas of each Python, and with one that has PyArrow.
func eachPandas(t *testing.T, f func(t *testing.T, python string)) {
	t.Helper()
	for _, python := range append(harness.Pythons(t), harness.PythonMore(t)) {
		if testing.Short() && python == harness.Python(t) {
			continue // which has none
		}
		t.Run(programtest.Environment(python), func(t *testing.T) {
			t.Parallel()
			f(t, python)
		})
	}
}

const tablesScript = `
import json, random, zlib
import numpy as np, pandas as pd, remote

rng, rows = random.Random(0), 10000

def column():
    numbers = np.arange(rows) + rng.randrange(1000)
    return rng.choice([
        lambda: numbers.astype(float), lambda: numbers * 0.5, lambda: numbers, lambda: numbers.astype("f4"), lambda: numbers % 3 == 0,
        lambda: pd.Series(numbers.astype("M8[ns]")), lambda: pd.Series(numbers.astype("M8[ns]")).dt.tz_localize("UTC"),
        lambda: pd.Series(numbers.astype("m8[ns]")),
    ])()

def label():
    return rng.choice(["price", "a b", "size", "x", "y", "z", "count", "_own", 'say "hi"', 0, 1, 7, -2, "é"])

df = pd.DataFrame({name: column() for name in ["price", "x", 7, "a b"]})
frames = {"this": [df]}

def replace(new):
    global df
    df = frames["this"][0] = new

def change():
    global df
    names = list(df.columns)
    def shuffled():
        rng.shuffle(names)
        return names[:rng.randrange(2, 6)]
    def set_rows():
        i = rng.randrange(rows)
        for name in names:
            if df[name].dtype.kind in "fi":
                df.loc[i, name] = 3
    if len(set(names)) < len(names) or len(names) < 3:
        return replace(pd.DataFrame({label(): column() for i in range(6)}))
    rng.choice([
        lambda: df.__setitem__(label(), column()), lambda: df.__setitem__(rng.choice(names), column()),
        lambda: df.__delitem__(rng.choice(names)), lambda: df.insert(rng.randrange(len(names)), "new%d" % rng.randrange(10**6), column()),
        lambda: setattr(df, "columns", rng.sample(names, len(names))), lambda: replace(df.copy()), lambda: replace(df[shuffled()]), set_rows, set_rows,
        lambda: df.drop(columns=names[:1], inplace=True), lambda: replace(pd.concat([df, df[names[:1]]], axis=1)),
        lambda: df.rename(columns={names[0]: "renamed"}, inplace=True), lambda: replace(df.iloc[::2].reset_index(drop=True).reindex(range(rows), fill_value=0)),
    ])()

def said(s):
    a = np.asarray(s.values)
    return [len(a), zlib.crc32(a.tobytes())]

def names():
    all, columns = {}, list(df.columns)
    for i, name in enumerate(columns):
        if columns.count(name) == 1 and df.dtypes.iloc[i] != object:
            text = json.dumps(name, ensure_ascii=False)
            all["df[%s]" % text] = all['frames["this"][0][%s]' % text] = said(df.iloc[:, i])
            if isinstance(name, str) and name.isidentifier() and name not in dir(pd.DataFrame):
                all["df." + name] = all["df." + name + ".values"] = said(df.iloc[:, i])
                all["df.%s[1::2]" % name] = said(df.iloc[:, i][1::2])
    return all

def step():
    for i in range(100):
        try:
            change()
            break
        except (ValueError, TypeError, KeyError):
            pass
    global series, index
    series = pd.Series(column())
    index = pd.Index(np.arange(rows) * 2)
    return dict(names(), series=said(series), index=said(index))
remote.serve()
`

// TestTables changes a table of pandas in all ways that come to mind, and compares what names of its columns lead to with what pandas
// says of them, each time: with views that were taken before the change, too.
func TestTables(t *testing.T) {
	t.Parallel()
	eachPandas(t, func(t *testing.T, python string) {
		run := harness.Start(t, tablesScript, harness.Options{Python: python})
		views := map[string]*core.View{}
		sources := map[string]*hostplugin.Source{}
		for step := range 60 {
			want := harness.Eval[map[string][2]int](t, run.Remote, "step()")
			for _, name := range slices.Sorted(maps.Keys(want)) {
				src := sources[name]
				if src == nil {
					var err error
					if src, err = run.Source(name); err != nil {
						t.Fatal(err)
					}
					sources[name] = src
				}
				v, _, err := src.Refresh(t.Context(), views[name], hostplugin.NoWait())
				if err != nil {
					t.Fatalf("step %d: %v", step, err)
				}
				views[name] = v
				all := make([]byte, v.NBytes())
				if _, err := core.CopyBytes(t.Context(), all, v); err != nil {
					t.Fatal(err)
				}
				if got := [2]int{v.Len(), int(crc32.ChecksumIEEE(all))}; got != want[name] {
					t.Fatalf("step %d: %s is %v, want %v: %v", step, name, got, want[name], v.Layout())
				}
				if v.NBytes() >= 80000 && v.Copied() {
					t.Errorf("step %d: %s is copied: %v", step, name, v.Reason())
				}
			}
		}
		for _, v := range views {
			closed(t, v)
		}
		run.NoLeases(t)
	})
}

// TestTablesWithout says of columns that are no arrays why, and what to look at instead.
func TestTablesWithout(t *testing.T) {
	t.Parallel()
	eachPandas(t, func(t *testing.T, python string) {
		run := harness.Start(t, `
import numpy as np, pandas as pd, remote
df = pd.DataFrame({"price": np.arange(3.), "kind": pd.Categorical(list("xyx")), "count": np.arange(3), "size": [1., 2., 3.]})
df["masked"] = pd.array([1, None, 3], dtype="Int64")
df["thin"] = pd.arrays.SparseArray([0., 0., 1.])
df["text"] = ["a", "b", "c"]
df["sparse"] = [1., 2., 3.]
twice = pd.DataFrame(np.ones((2, 2)), columns=["x", "x"])
deep = pd.DataFrame(np.ones((2, 2)), columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")]))
class Own(pd.DataFrame):
    def __getitem__(self, key): ran.append(key)
own, ran = Own({"x": [1.]}), []
remote.serve()
`, harness.Options{Python: python})
		harness.Eval[int](t, run.Remote, "1")
		for name, texts := range map[string][]string{
			"df.masked":     {"IntegerArray", "view df.masked.array._data and df.masked.array._mask"},
			"df.kind":       {"Categorical", "view"},
			"df.thin":       {"SparseArray", "_sparse_values"},
			"df.text":       {"text"},
			"df.index":      {"RangeIndex"},
			"df.sparse":     {"has no attribute sparse", `the column is df["sparse"]`},
			"df.prise":      {`did you mean "price"?`},
			`df["prise"]`:   {`no column ["prise"]`, `did you mean "price"?`},
			"df[5]":         {"no column [5]"},
			"df":            {"DataFrame is not an array"},
			"twice.x":       {},
			`twice["x"][0]`: {},
			`deep["a"]`:     {"DataFrame is not an array"},
			"df.price[3]":   {"df.price[3]: index 3 is out of bounds for axis 0 with size 3"},
		} {
			v, err := run.Session.View(t.Context(), name, hostplugin.NoWait())
			if err == nil {
				t.Errorf("%s is %v", name, v.Layout())
				closed(t, v)
				continue
			}
			for _, text := range texts {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%s: %q does not say %q", name, err, text)
				}
			}
		}
		for _, name := range []string{"df.masked.array._data", "df.masked.array._mask", "df.thin.array._sparse_values", `df["size"]`, "df.price.array"} {
			v, err := run.Session.View(t.Context(), name, hostplugin.NoWait())
			if err != nil {
				t.Error(err)
				continue
			}
			closed(t, v)
		}
		wantNames(t, run, "df.*", "df.price")
		wantNames(t, run, "df[*]", `df["count"]`, `df["price"]`, `df["size"]`, `df["sparse"]`)
		wantNames(t, run, `df["*i*"][1:]`, `df["price"][1:]`, `df["size"][1:]`)
		wantNames(t, run, "d*.**", "df.price", `df["count"]`, `df["size"]`, `df["sparse"]`)
		search(t, run, "**", 0)
		if ran := harness.Eval[string](t, run.Remote, "repr(ran)"); ran != "[]" {
			t.Errorf("a search ran %s", ran)
		}
		run.NoLeases(t)
	})
}
