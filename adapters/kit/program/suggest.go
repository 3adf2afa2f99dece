package program

import "slices"

// nearest gives the word that name was probably meant to be, or "". Of several that are as near it
// is the first in order.
func nearest(name string, words []string) string {
	best, distance := "", (len([]rune(name))+1)/3+1
	for _, w := range slices.Sorted(slices.Values(words)) {
		if d := editDistance([]rune(name), []rune(w), distance); d < distance && w != name {
			best, distance = w, d
		}
	}
	return best
}

// editDistance counts the runes to insert, delete, replace or swap with a neighbour that make b of
// a. Anything from limit on may come out as limit.
func editDistance(a, b []rune, limit int) int {
	if max(len(a)-len(b), len(b)-len(a)) >= limit {
		return limit
	}
	above2, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		above2, above, row = above, row, above2
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(above[j]+cost, above[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], above2[j-1]+1)
			}
		}
	}
	return min(row[len(b)], limit)
}

// meant is a remedy that names the nearest word, or "".
func meant(name string, words []string) string {
	if w := nearest(name, words); w != "" {
		return `did you mean "` + w + `"?`
	}
	return ""
}
