// Package prose is for text that people read: what they most likely meant by a name that does not exist, and what a program
// says, made safe to print.
package prose

import (
	"iter"
	"strings"
)

// Nearest gives the candidate that is most like name, the first of several, or "" if none is near
// enough: of three letters one may differ, a swap of neighbours counting once, letter case not at all.
// Candidates may come from anywhere: long ones cost nothing.
func Nearest(name string, candidates iter.Seq[string]) string {
	letters := []rune(strings.ToLower(name))
	best, bestDistance := "", (len(letters)+1)/3+1
	for c := range candidates {
		if len(c) > 4*(len(letters)+bestDistance) { // four bytes a letter at most
			continue
		}
		if d := distance(letters, []rune(strings.ToLower(c))); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// Remedy words the nearest candidate as a remedy, or gives fallback if none is near.
func Remedy(name string, candidates iter.Seq[string], fallback string) string {
	if near := Nearest(name, candidates); near != "" {
		return Meant(near)
	}
	return fallback
}

// Meant words a name that was probably meant as a remedy.
func Meant(name string) string { return `did you mean "` + name + `"?` }

// distance counts insertions, deletions, substitutions and swaps of neighbours.
func distance(a, b []rune) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
