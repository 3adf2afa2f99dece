package inspect

import (
	"time"

	"github.com/ndbridge/ndbridge/core/contract"
)

// lingers is for how long an array stays in the tree that the program does not have any more: local variables go with each call of a function.
const lingers = 5 * time.Second

// lingering knows what was found lately.
type lingering struct {
	last   []contract.Entry     // with those that stayed
	missed map[string]time.Time // those that stayed: when they were not found first
}

// with gives the arrays that were found, and between them those that are missed since a short while ago, where they were then, unless their names are
// those of something else now.
func (l *lingering) with(found contract.Found, now time.Time) []contract.Entry {
	there := make(map[string]bool)
	for _, n := range found.Numbers {
		there[n.Name] = true
	}
	for _, e := range found.Entries {
		there[e.Name] = true
		for _, name := range e.Also {
			there[name] = true
		}
	}
	missed, behind, before := make(map[string]time.Time), make(map[string][]contract.Entry), ""
	for _, e := range l.last {
		if !there[e.Name] {
			since, ok := l.missed[e.Name]
			if !ok {
				since = now
			}
			if now.Sub(since) >= lingers {
				continue
			}
			behind[before] = append(behind[before], e)
			missed[e.Name] = since
		}
		before = e.Name
	}
	all := make([]contract.Entry, 0, len(found.Entries)+len(missed))
	var add func(name string)
	add = func(name string) {
		for _, e := range behind[name] {
			all = append(all, e)
			add(e.Name)
		}
	}
	add("")
	for _, e := range found.Entries {
		all = append(all, e)
		add(e.Name)
	}
	l.last, l.missed = all, missed
	return all
}
