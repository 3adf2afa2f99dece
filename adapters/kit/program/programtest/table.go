package programtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// CheckTable checks what a reader of the table is promised: that each quirk says what it is about, and
// that each has one witness. elsewhere are those whose witness is a test of its own.
func (q *Quirks) CheckTable(t *testing.T, elsewhere ...core.QuirkID) {
	t.Helper()
	for _, w := range q.Witnesses {
		elsewhere = append(elsewhere, w.ID)
	}
	for _, quirk := range q.Table {
		if !strings.HasPrefix(string(quirk.ID), q.Framework+".") || quirk.Framework != q.Framework ||
			quirk.Summary == "" || quirk.Upstream == "" || quirk.Effect == "" ||
			quirk.Effect == contract.EffectRefuse && quirk.Remedy == "" {
			t.Errorf("%s is not complete: %+v", quirk.ID, quirk)
		}
		for _, version := range []string{quirk.Since, quirk.Until} {
			if _, err := contract.ParseVersion(version); version != "" && err != nil {
				t.Errorf("%s: %v", quirk.ID, err)
			}
		}
		i := slices.Index(elsewhere, quirk.ID)
		if i < 0 {
			t.Errorf("%s has no witness, or stands twice", quirk.ID)
			continue
		}
		elsewhere = slices.Delete(elsewhere, i, i+1)
	}
	if len(elsewhere) > 0 {
		t.Errorf("%v are witnessed and are no quirks", elsewhere)
	}
}

// ProveEach proves the quirks under each of the interpreters, by their names. If these are all versions
// that tests are made for, each quirk must be in one of them, but for those elsewhere.
func (q *Quirks) ProveEach(t *testing.T, pythons map[string]string, all bool, elsewhere ...core.QuirkID) {
	t.Helper()
	proven := make(chan []core.QuirkID, len(pythons))
	t.Run("versions", func(t *testing.T) {
		for version, python := range pythons {
			t.Run(version, func(t *testing.T) {
				t.Parallel()
				proven <- q.Prove(t, python)
			})
		}
	})
	close(proven)
	for ids := range proven {
		elsewhere = append(elsewhere, ids...)
	}
	for _, quirk := range q.Table {
		if all && !slices.Contains(elsewhere, quirk.ID) {
			t.Errorf("no version of %s here has %s", q.Framework, quirk.ID)
		}
	}
}
