package wire

import (
	"strings"
	"unicode/utf8"
)

// Limits on what one message may hold. They are far above what is useful and keep a broken or
// hostile other side from filling memory.
const (
	maxText      = 16 << 10 // bytes of one text: names, causes
	maxLongText  = 64 << 10 // bytes of a traceback or of a dtype's tag
	maxList      = 4096     // elements of one list
	maxReleases  = 1 << 16  // leases in one Release call
	maxRenewals  = 256      // leases in one Renew call
	maxEntries   = 1 << 20  // entries in one listing
	maxMessage   = 16 << 20 // bytes of one message
	entryBatch   = 64       // entries in one message of a listing
	replacement  = "\uFFFD"
	cutIndicator = " ... "
)

// text makes s fit to travel: valid UTF-8 of at most maxText bytes.
func text(s string) string { return clip(s, maxText) }

// longText is text with a higher limit.
func longText(s string) string { return clip(s, maxLongText) }

// clip forces s to UTF-8 and cuts its middle out where it is longer than limit bytes: of a traceback
// as of a sentence, the beginning and the end say most.
func clip(s string, limit int) string {
	s = strings.ToValidUTF8(s, replacement)
	if len(s) <= limit {
		return s
	}
	head, tail := limit/4, len(s)-(limit-limit/4-len(cutIndicator))
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + cutIndicator + s[tail:]
}
