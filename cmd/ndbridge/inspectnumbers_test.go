package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestInspectNumbers lists Python's own numbers, follows them, and raises an alarm when one is NaN, and none of those that began so.
func TestInspectNumbers(t *testing.T) {
	t.Parallel()
	i := inspectProgram(t, "--script", "testdata/followed.py", "--alarm", "nan", "--alarm", "inf", "--alarm", "*acc*: max>0.9", "--step", "train().step")
	conn := i.page(t, `{"look": null}`)
	entries := make(map[string]string)
	until(t, conn, func(m map[string]any) bool {
		all, _ := m["entries"].([]any)
		for _, e := range all {
			e := e.(map[string]any) //nolint:errcheck,forcetypeassert // the test would fail
			if e["number"] == true {
				entries[e["name"].(string)], _ = e["dtype"].(string) //nolint:forcetypeassert // as above
			}
		}
		return entries["train().loss"] != ""
	})
	for name, kind := range map[string]string{"best": "float", "rate": "float", "train().step": "int", `metrics["acc"]`: "float", `metrics["done"]`: "", "train": ""} {
		if entries[name] != kind {
			t.Errorf("%s is %q in %v", name, entries[name], entries)
		}
	}
	var raised []string
	values, now := make(map[string][]float64), make(map[string]string)
	until(t, conn, func(m map[string]any) bool {
		if m["topic"] == "scalars" {
			for _, s := range m["series"].([]any) { //nolint:errcheck,forcetypeassert // the test would fail
				s := s.(map[string]any)    //nolint:errcheck,forcetypeassert // as above
				name := s["name"].(string) //nolint:errcheck,forcetypeassert // as above
				now[name], _ = s["now"].(string)
				for _, x := range s["mean"].([]any) { //nolint:errcheck,forcetypeassert // as above
					if x, ok := x.(float64); ok {
						values[name] = append(values[name], x)
					}
				}
			}
		}
		if events, _ := m["events"].([]any); len(events) > 0 {
			raised = nil
			for _, e := range events {
				raised = append(raised, e.(map[string]any)["text"].(string)) //nolint:errcheck,forcetypeassert // as above
			}
		}
		return now["train().loss"] == "NaN" && len(values["train().step"]) > 4 && slices.ContainsFunc(raised, func(text string) bool {
			return strings.HasPrefix(text, "train().loss: nan: ")
		})
	})
	steps, losses := values["train().step"], values["train().loss"]
	if !slices.IsSorted(steps) || len(losses) == 0 || slices.Min(losses) <= 1.0/200 || !slices.IsSortedFunc(losses, func(a, b float64) int { return int(b*1e6 - a*1e6) }) ||
		len(values["rate"]) == 0 || values["rate"][0] != 0.25 || now["best"] != "+Inf" {
		t.Errorf("%v, now %v", values, now)
	}
	if text := strings.Join(raised, "\n"); !strings.Contains(text, `metrics["acc"]: *acc*: max>0.9: max is 0.9`) || strings.Contains(text, ": inf") || !strings.Contains(text, " at step 2") {
		t.Error(text)
	}
	u := *i.address
	u.Path, u.RawQuery = "/metrics", ""
	if got := i.get(t, u.String()); !strings.Contains(got, "\nndbridge_number{name=\"train().loss\"} NaN\n") || !strings.Contains(got, `ndbridge_number{name="metrics[\"acc\"]"} 0.9`) {
		t.Error(got)
	}
	u.Path = "/stats.json"
	var state struct {
		Arrays []struct {
			Name    string
			Number  bool
			History []any
		}
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(i.get(t, u.String()), "200 ")), &state); err != nil {
		t.Error(err)
	}
	history := 0
	for _, s := range state.Arrays {
		if s.Name == "train().step" && s.Number {
			history = len(s.History)
		}
	}
	if history < 4 {
		t.Errorf("no history in %+v", state)
	}
	// A number that no list has is found by its name.
	conn = i.page(t, `{"look": {"name": "train().step", "width": 8, "height": 8}}`)
	until(t, conn, func(m map[string]any) bool { return m["topic"] == "array" && m["number"] == "int" })
	i.end(t)
}
