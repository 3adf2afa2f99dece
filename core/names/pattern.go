package names

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Every is the pattern of all arrays that a program's variables lead to.
const Every = "**"

// ParsePattern reads a pattern of names: a name in which a * stands for any text of one variable, attribute or quoted key
// (`model.layer*.weight`, `state["*"]`, `main().*`), or alone behind a dot also for any index (`layers.*.weight`), [*] for any
// item, and ** for any way to go on (`model.**`). The error wraps core.ErrConfig.
func ParsePattern(pattern string) (Path, error) { return parse(&parser{rest: pattern, globs: true}) }

// IsPattern reports whether a name can be read as a pattern that is not just a name.
func IsPattern(name string) bool {
	if !strings.Contains(name, "*") {
		return false
	}
	p, err := ParsePattern(name)
	return err == nil && p.Globs()
}

// Globs reports whether a path is a pattern that may mean several names.
func (p Path) Globs() bool {
	for _, s := range p.Steps {
		if s.Globs() {
			return true
		}
	}
	return strings.Contains(p.Root, "*")
}

// Globs reports whether a step of a pattern may mean several.
func (s Step) Globs() bool {
	switch s.Kind {
	case Deep, Each:
		return true
	case Attr, Key:
		return strings.Contains(s.Text, "*")
	default:
		return false
	}
}

// Matches reports whether a step of a pattern, which is not [Deep], means a step of a name.
func (s Step) Matches(of Step) bool {
	switch s.Kind {
	case Each:
		return of.Kind == Key || of.Kind == Item || of.Kind == Slice || of.Kind == ByName
	case Attr:
		return of.Kind == Attr && MatchName(s.Text, of.Text) || of.Kind == Item && s.Text == "*"
	case Key:
		return of.Kind == Key && match(s.Text, of.Text)
	case ByName:
		return of.Kind == ByName && s.By.String() == of.By.String()
	default:
		return of.Kind == s.Kind && of.Item == s.Item && slices.Equal(s.Of, of.Of)
	}
}

// MatchName reports whether a pattern means the name of a variable or of an attribute. As for files in a shell, a star does not
// stand for an underscore at the beginning.
func MatchName(pattern, name string) bool {
	if strings.HasPrefix(pattern, "*") && strings.HasPrefix(name, "_") {
		return false
	}
	return match(pattern, name)
}

// match is for texts, in which a star is any text.
func match(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, parts[last])
}

// IsIdentifier reports whether a text can stand behind a dot.
func IsIdentifier(text string) bool {
	r := parser{rest: text}
	_, err := r.identifier()
	return err == nil && r.rest == ""
}

// onlyNames refuses what a pattern cannot have: what may follow a ** is an attribute or an item.
func (p Path) onlyNames() error {
	for i, s := range p.Steps {
		if s.Kind == Deep && i > 0 && p.Steps[i-1].Kind == Deep || s.Kind == Deep && i == 0 && p.Root == Every {
			return errors.New("one ** follows another")
		}
		if s.Kind == Slice && s.isIndex() && i+1 < len(p.Steps) && p.Steps[i+1].Globs() {
			return fmt.Errorf("%s stands behind a part of an array", p.Steps[i+1])
		}
	}
	return nil
}
