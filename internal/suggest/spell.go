// Package spell measures how far a word is from the one that was meant.
package suggest

import "strings"

// Distance is the number of edits between two words: an insertion, a deletion, a
// replacement or a swap of neighbours each count one (optimal string alignment). Words of
// more than 64 bytes are 64 apart.
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

// maxTypos is how many slips of the finger still make a name recognizable.
const maxTypos = 2

// Nearest is the known name that was most likely meant by another word, the first of
// several, or "". Small and capital letters are the same.
func Nearest(word string, known []string) string {
	best, least := "", maxTypos+1
	for _, k := range known {
		if d := Distance(strings.ToLower(word), strings.ToLower(k)); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}
