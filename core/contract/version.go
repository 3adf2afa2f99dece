package contract

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ndbridge/ndbridge/core"
)

// Version is the version of a framework or of an interpreter. Versions have the order of Python packages (PEP 440):
// "2.0.0.dev1" < "2.0.0a1" < "2.0.0rc1" < "2.0.0" < "2.0.0.post1" < "2.0.1", and "2.0" equals "2.0.0". The local
// part, as in "2.11.0+cu128", does not count.
type Version struct { //nolint:recvcheck // made through a pointer, used as a value
	text    string
	epoch   int
	release []int // without zeros at the end
	pre     phase
	post    int // -1 if there is none
	dev     int // math.MaxInt if there is none, since it comes after all that have one
}

// A phase is where in the making of a release a version stands.
type phase struct{ kind, number int }

// The kinds of phase in their order. A development version without another phase precedes all.
const (
	phaseDev = iota
	phaseAlpha
	phaseBeta
	phaseCandidate
	phaseFinal
)

// ParseVersion reads a version as Python packages spell it: "1.26.4", "2.0.0rc1",
// "2.11.0a0+gitabc", "1!2.0.post1.dev3". The error wraps core.ErrVersion.
func ParseVersion(s string) (Version, error) {
	v := Version{text: s, pre: phase{kind: phaseFinal}, post: -1, dev: math.MaxInt}
	rest, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(s)), "+")
	rest = strings.TrimPrefix(rest, "v")
	if epoch, after, ok := strings.Cut(rest, "!"); ok {
		n, tail, ok := number(epoch)
		if !ok || tail != "" {
			return Version{}, versionError(s)
		}
		v.epoch, rest = n, after
	}
	n, rest, ok := number(rest)
	if !ok {
		return Version{}, versionError(s)
	}
	v.release = append(v.release, n)
	for strings.HasPrefix(rest, ".") {
		n, tail, ok := number(rest[1:])
		if !ok {
			break
		}
		v.release, rest = append(v.release, n), tail
	}
	for len(v.release) > 0 && v.release[len(v.release)-1] == 0 {
		v.release = v.release[:len(v.release)-1]
	}
	if !v.suffixes(rest) {
		return Version{}, versionError(s)
	}
	return v, nil
}

// suffixes reads what follows the release: a phase, a post-release, a development version, each at
// most once and in this order.
func (v *Version) suffixes(rest string) bool {
	const (
		seenPhase = iota + 1
		seenPost
		seenDev
	)
	for seen := 0; rest != ""; {
		separated := strings.TrimLeft(rest, "._-")
		if len(rest)-len(separated) > 1 {
			return false
		}
		word := separated[:len(separated)-len(strings.TrimLeft(separated, "abcdefghijklmnopqrstuvwxyz"))]
		tail := separated[len(word):]
		n, after, ok := number(strings.TrimLeft(tail, "._-"))
		if !ok {
			n, after = 0, tail
		}
		now := seenPhase
		switch word {
		case "a", "alpha":
			v.pre = phase{phaseAlpha, n}
		case "b", "beta":
			v.pre = phase{phaseBeta, n}
		case "c", "rc", "pre", "preview":
			v.pre = phase{phaseCandidate, n}
		case "post", "rev", "r", "": // "1.0-1" is the short form of "1.0.post1"
			if word == "" && (!ok || rest[0] != '-') {
				return false
			}
			v.post, now = n, seenPost
		case "dev":
			v.dev, now = n, seenDev
			if seen == 0 {
				v.pre.kind = phaseDev
			}
		default:
			return false
		}
		if now <= seen {
			return false
		}
		seen, rest = now, after
	}
	return true
}

// Compare returns a negative number if v comes before w, 0 if they are equal in order, and a positive number if v
// comes after w.
func (v Version) Compare(w Version) int {
	return cmp.Or(
		cmp.Compare(v.epoch, w.epoch),
		slices.Compare(v.release, w.release),
		cmp.Compare(v.pre.kind, w.pre.kind),
		cmp.Compare(v.pre.number, w.pre.number),
		cmp.Compare(v.post, w.post),
		cmp.Compare(v.dev, w.dev),
	)
}

// String returns the text that was parsed.
func (v Version) String() string { return v.text }

// less reports whether v comes before the version that text spells. No version comes before one that
// cannot be read.
func (v Version) less(text string) bool {
	w, err := ParseVersion(text)
	return err == nil && v.Compare(w) < 0
}

// number reads the decimal number that s begins with.
func number(s string) (n int, rest string, ok bool) {
	rest = strings.TrimLeft(s, "0123456789")
	n, err := strconv.Atoi(s[:len(s)-len(rest)])
	return n, rest, err == nil
}

func versionError(s string) error {
	return &core.Error{Op: "version", Kind: core.ErrVersion, Err: fmt.Errorf("%q is not a version", s)}
}
