package prose

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// safe reports whether a character is printed as itself.
func safe(r rune, size int) bool { return unicode.IsGraphic(r) && (r != utf8.RuneError || size > 1) }

// Line gives s with everything escaped, as Go does in quoted strings, that is not printed as itself. It
// is for what stands in a line with other text.
func Line(s string) string { return escaped(s, "") }

// Text is [Line] for text of several lines: newlines and tabs stay.
func Text(s string) string { return escaped(s, "\n\t") }

func escaped(s, keep string) string {
	var b strings.Builder
	for rest := s; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case safe(r, size) || strings.ContainsRune(keep, r):
			b.WriteRune(r)
		case r == utf8.RuneError: // a byte that is no character
			fmt.Fprintf(&b, `\x%02x`, rest[0])
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		rest = rest[size:]
	}
	return b.String()
}

// JSON gives a JSON text, which ends in a newline, with the same meaning: in its strings, what is not
// printed as itself is escaped as JSON does.
func JSON(text []byte) []byte {
	if !slices.ContainsFunc(text, func(c byte) bool { return c != '\n' && (c < ' ' || c > '~') }) {
		return text // as nearly all is: a watch prints hundreds of lines a second
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		switch {
		case r == '\n' || safe(r, 2):
			b.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}
