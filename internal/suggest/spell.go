// Package suggest finds the name that a misspelt word was meant to be.
package suggest

import "strings"

// Distance returns the number of edits between two words. An insertion, a deletion, a
// replacement and a swap of neighbours each count one (optimal string alignment). Words
// of more than 64 bytes have distance 64.
func Distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// maxTypos is the distance up to which a name is suggested.
const maxTypos = 2

// Nearest returns the known name that is nearest to a word, the first of several, or "".
// Case does not matter.
func Nearest(word string, known []string) string {
	best, least := "", maxTypos+1
	for _, k := range known {
		if d := Distance(strings.ToLower(word), strings.ToLower(k)); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}
