package engine

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/names"
)

const (
	// searchTurn is for how long a search holds the GIL at a time, but for the one array that it reads last.
	searchTurn = 700 * time.Microsecond
	// maxSearched bounds how many objects a search looks into.
	maxSearched = 200_000
	// maxSearchedDepth is how many steps a name may have.
	maxSearchedDepth = 64
	// maxSearchFound bounds how many arrays a search tells of.
	maxSearchFound = 100_000
	// maxAlso bounds how many names of one array are told.
	maxAlso = 1000
)

// search is one search for arrays. Between its turns it holds nothing of the program's: it has names, and follows them again.
type search struct {
	program *Program
	limit   int
	queue   []place
	begun   time.Time // the turn
	turns   int
	looked  int

	kinds   map[py.Object]kind
	seen    map[object]sight // what a ** has come to
	found   map[string]*discovery
	objects map[py.Object]*discovery // arrays that are objects of their own, by their best names
	later   []place                  // dicts whose keys are arrays, which have names when all else was looked through
	names   *search                  // that has found these names; nil: none was needed
	entries []*discovery
	numbers numbers
	more    int

	partial   bool
	importing bool // when the search began
}

// place is where a search goes on: the name of an object, what of the pattern is left from there, how many of the object's parts were
// looked at, and the numbers among those.
type place struct {
	path    names.Path
	rest    []names.Step
	at      int
	numbers []number
	order   order

	// where finds what of the pattern is left for an item of a dict by an array; nil: the place is no such dict, or not only.
	where func(names.Step) ([]names.Step, bool)
}

// order says where in the program something was found: the position of the root, and of each part on the way. So objects are in the
// order in which the program made their parts.
type order []int

func (o order) with(at int) order { return append(o[:len(o):len(o)], at) }

// The first of an order: what was published comes first, then global variables, then those of functions.
const (
	publishedFirst = iota
	globalsNext
	localsLast
)

// lasts says how long a name leads somewhere, by what it begins with: the less, the longer. A variable of a function ends with the call, and a call before
// the one that it was made by.
func (o order) lasts() int {
	if len(o) < 2 || o[0] != localsLast {
		return math.MinInt
	}
	return o[1]
}

// object is one that was seen, and how much of the pattern was left.
type object struct {
	o    py.Object
	rest int
}

// Search implements [contract.Searcher].
func (p *Program) Search(ctx context.Context, q contract.Search) (contract.Found, error) {
	const op = "search"
	s := p.newSearch(min(cmp.Or(q.Limit, maxSearchFound), maxSearchFound))
	s.numbers = numbers{wanted: q.Numbers || len(q.Names) > 0, asked: q.Names, limit: min(cmp.Or(q.Limit, maxNumbers), maxNumbers)}
	pattern, err := s.parse(q)
	if err != nil {
		return contract.Found{}, about(op, "", "", err)
	}
	if _, _, err := p.state.watch(); err != nil {
		return contract.Found{}, about(op, q.Pattern, "", err)
	}
	err = s.run(ctx, pattern)
	if err != nil {
		return contract.Found{}, about(op, q.Pattern, "", p.orEnd(err))
	}
	found := contract.Found{Numbers: s.numbers.told(), More: s.more, Partial: s.partial, Importing: s.importing}
	slices.SortStableFunc(s.entries, func(a, b *discovery) int { return slices.Compare(a.order, b.order) })
	for _, e := range s.entries {
		slices.Sort(e.Also)
		found.Entries = append(found.Entries, e.Entry)
	}
	return found, nil
}

func (p *Program) newSearch(limit int) *search {
	return &search{
		program: p, limit: limit, seen: make(map[object]sight), kinds: make(map[py.Object]kind), found: make(map[string]*discovery),
		objects: make(map[py.Object]*discovery),
	}
}

// run looks for all that a pattern means, or for numbers whose names are in the queue.
func (s *search) run(ctx context.Context, pattern names.Path) (err error) {
	if !s.numbers.only() {
		err = s.program.interp.Do(ctx, func(g *py.GIL) error { return s.roots(ctx, g, pattern) })
	}
	for err == nil && len(s.queue) > 0 {
		err = s.program.interp.Do(ctx, func(g *py.GIL) error { return s.turn(ctx, g) })
		if err == nil && len(s.queue) == 0 && len(s.later) > 0 {
			s.queue, s.later = s.later, nil
			err = s.name(ctx, pattern)
		}
	}
	return err
}

// parse reads what is searched for: a pattern, or names, which the search follows first.
func (s *search) parse(q contract.Search) (pattern names.Path, err error) {
	if !s.numbers.only() {
		return names.ParsePattern(q.Pattern)
	}
	for i, name := range q.Names {
		path, err := names.Parse(name)
		if err != nil {
			return names.Path{}, err
		}
		s.push(place{path: path, order: order{i}})
	}
	return names.Path{}, nil
}

// turn looks at some of what is left.
func (s *search) turn(ctx context.Context, g *py.GIL) error {
	s.begun = time.Now()
	s.turns++
	clear(s.kinds)
	for len(s.queue) > 0 && !s.late() {
		if err := ctx.Err(); err != nil {
			return err
		}
		next := s.queue[0]
		s.queue = s.queue[1:]
		err := g.Nested(func() error {
			o, ok := s.program.reach(g, next.path)
			switch {
			case !ok:
				return nil
			case next.where != nil:
				return s.byObjects(g, o, next)
			}
			return s.match(g, o, next)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *search) late() bool { return time.Since(s.begun) > searchTurn }

// push has a part looked at later.
func (s *search) push(p place) {
	if len(p.path.Steps) > maxSearchedDepth { // what lies deeper has no name
		return
	}
	if s.looked++; s.looked > maxSearched {
		s.partial = true
		return
	}
	s.queue = append(s.queue, p)
}

// match holds an object against what is left of the pattern.
func (s *search) match(g *py.GIL, o py.Object, at place) error {
	if s.numbers.wanted {
		if n, ok := s.number(g, o, at); ok || s.numbers.only() {
			if ok {
				s.count(n)
			}
			return nil
		}
	}
	if rest, ok := onlyNames(at.rest); ok {
		if b, ok, err := s.program.fronted(g, o, rest); ok || err != nil {
			for _, step := range rest[:b.Used] {
				at.path = at.path.With(step)
			}
			at.rest = rest[b.Used:]
			return s.addBehind(g, o, b, at, err)
		}
	}
	if f, _, err := s.program.owner(g, o); f != nil || err != nil {
		if rest, ok := ofArray(at.rest); ok && err == nil {
			err = s.add(g, o, owner{f, f.name}, nil, place{path: at.path, rest: rest, order: at.order})
		}
		if err == nil {
			err = s.beyond(g, f, o, at)
		}
		return err
	}
	if len(at.rest) == 0 {
		return nil
	}
	way := s.program.wayToLocals(g, o)
	local, rest := goesBy(at.rest, way), at.rest
	if local {
		rest = rest[len(way):]
	}
	side := func(step names.Step) bool { return len(way) == 0 || (step.Kind == names.Key) == local }
	switch next := rest[0]; {
	case next.Kind == names.Deep && !local:
		if at.at == 0 {
			if s.again(g, object{o, len(at.rest)}, at) {
				return nil
			}
			if err := s.match(g, o, place{path: at.path, rest: rest[1:], order: at.order}); err != nil {
				return err
			}
		}
		return s.parts(g, o, at, way, func(step names.Step) ([]names.Step, bool) { return rest, isFollowed(step) })
	case next.Kind == names.Deep:
		return s.parts(g, o, at, way, func(step names.Step) ([]names.Step, bool) { return rest, side(step) })
	case next.Globs():
		named := next.Kind == names.Attr && len(g.Fields(o)) > 0 // what has an index, too, is meant once
		return s.parts(g, o, at, way, func(step names.Step) ([]names.Step, bool) {
			return rest[1:], next.Matches(step) && side(step) && (!named || step.Kind != names.Item)
		})
	default:
		if local {
			at.path = at.path.With(way...)
		}
		s.push(place{path: at.path.With(next), rest: rest[1:], order: at.order})
		return nil
	}
}

// isFollowed reports whether a ** goes on by a step. Of the attributes with two underscores at the beginning, those of functions and
// methods lead on.
func isFollowed(s names.Step) bool {
	if s.Kind != names.Attr || !strings.HasPrefix(s.Text, "__") {
		return true
	}
	switch s.Text {
	case "__closure__", "__defaults__", "__kwdefaults__", "__self__", "__func__":
		return true
	}
	return false
}

// again reports whether a ** has come to an object before, and notes that it has now. It does not count if that was by a variable of a call, and this is
// by a name that lasts longer: the call may end before its parts were looked at.
func (s *search) again(g *py.GIL, id object, at place) bool {
	before, ok := s.seen[id]
	if ok && before.turn != s.turns {
		ok = s.isStill(g, before.path, id.o)
	}
	if ok && at.order.lasts() >= before.order.lasts() {
		return true
	}
	s.seen[id] = sight{s.turns, at.path, at.order}
	return false
}

// parts goes through what an object leads to: where finds what of the pattern is left for a part, or false. way comes before a key, if it is
// a local variable ([Program.wayToLocals]).
func (s *search) parts(g *py.GIL, o py.Object, from place, way []names.Step, where func(names.Step) ([]names.Step, bool)) error {
	if table, err := s.columns(g, o, from, where); table || err != nil {
		return err
	}
	if from.at == 0 && s.hasArrayKeys(g, o) {
		s.later = append(s.later, place{path: from.path, order: from.order, where: where})
	}
	n := 0
	var failed error
	numbers, settled := from.numbers, !s.numbers.wanted || s.settings(g, o, from)
	named := !settled && g.ExactType(o) == "" && g.IsTuple(o) && len(g.Fields(o)) > 0
	err := s.program.parts(g, o, from.at, func(step names.Step, part py.Object, next int) bool {
		if rest, ok := where(step); ok {
			path := from.path
			if step.Kind == names.Key {
				path = path.With(way...)
			}
			at := place{path: path.With(step), rest: rest, order: from.order.with(next)}
			if kind := s.kindOf(g, part); kind != numeral {
				failed = s.part(g, part, kind, at)
			} else if !settled && len(numbers) <= maxTogether && (!named || step.Kind != names.Item) {
				if one, ok := s.number(g, part, at); ok {
					numbers = append(numbers, one)
				}
			}
			if failed != nil {
				return false
			}
		}
		if n++; n%16 == 0 && s.late() { // the rest in another turn
			from.at, from.numbers, numbers = next, numbers, nil
			s.queue = slices.Insert(s.queue, 0, from)
			return false
		}
		return true
	})
	if len(numbers) <= maxTogether {
		s.count(numbers...)
	}
	if err == nil {
		err = failed
	}
	return err
}

// part goes on at a part of an object.
func (s *search) part(g *py.GIL, o py.Object, kind kind, at place) error {
	switch kind {
	case leaf:
		return nil
	case array:
		return s.match(g, o, at)
	default:
		s.push(at)
		return nil
	}
}
