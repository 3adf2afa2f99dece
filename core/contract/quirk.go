package contract

import "github.com/ndbridge/ndbridge/core"

// Effect is what a quirk does about the deviation that it describes.
type Effect string

// The effects.
const (
	EffectRefuse  Effect = "refuse"  // say no, with the remedy
	EffectReroute Effect = "reroute" // use another protocol
	EffectCorrect Effect = "correct" // the same protocol, with a fixed argument or value
	EffectStage   Effect = "stage"   // copy, if the request allows it
)

// Quirk is one deviation of one framework, in one range of versions, from what the export
// protocols say.
type Quirk struct {
	ID        core.QuirkID
	Framework string // "numpy"
	Since     string // first version that has it; "" is open
	Until     string // first version that no longer has it; "" is open
	Protocol  string // "dlpack", "dlpack-exchange", "array-interface", "cuda-array-interface", "buffer"; "" for all
	Summary   string // what goes wrong without it
	Remedy    string // what the user can do, or ""
	Effect    Effect
	Choices   []string // what users may choose as the effect, the usual one first; nil if there is no choice
	Upstream  string   // the issue, source file or text that shows it
}

// Versions puts the range of versions into words: "all", ">= 1.22.0", "< 2.1.0", ">= 1.22.0, < 2.1.0".
func (q Quirk) Versions() string {
	switch {
	case q.Since == "" && q.Until == "":
		return "all"
	case q.Until == "":
		return ">= " + q.Since
	case q.Since == "":
		return "< " + q.Until
	}
	return ">= " + q.Since + ", < " + q.Until
}

// Applies reports whether a version of the framework has the quirk: Since <= version < Until in the order of
// [Version], in which "2.0.0rc1" comes before "2.0.0". A version that cannot be read counts as newer than all
// others.
func (q Quirk) Applies(version string) bool {
	v, err := ParseVersion(version)
	if err != nil {
		return q.Until == ""
	}
	return (q.Since == "" || !v.less(q.Since)) && (q.Until == "" || v.less(q.Until))
}
