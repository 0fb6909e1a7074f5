package submit

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// didYouMean returns a sentence that offers the nearest of the names, or lists them when none is near and they are few.
func didYouMean(name string, names []string) string {
	if best := nearest(name, names); best != "" {
		return " Did you mean \"" + best + "\"?"
	}
	if len(names) > 0 && len(names) <= 12 {
		return " There is " + strings.Join(names, ", ") + "."
	}
	return ""
}

// nearest returns the one of names that name was most likely meant to be, or "". Case and underscores weigh nothing.
func nearest(name string, names []string) string {
	plain := squeeze(name)
	best, least := "", 1+max(1, len(plain)/3)
	for _, candidate := range names {
		if d := distance(plain, squeeze(candidate)); d < least {
			best, least = candidate, d
		}
	}
	return best
}

func squeeze(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// distance is the number of edits between two words: an insertion, a deletion, a replacement or a swap of neighbours each
// count one (optimal string alignment).
func distance(a, b string) int {
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

// sortByPlace orders diagnostics by line and column; those without a place come first.
func sortByPlace(diags hcl.Diagnostics) {
	slices.SortStableFunc(diags, func(a, b *hcl.Diagnostic) int { return place(a) - place(b) })
}

func place(d *hcl.Diagnostic) int {
	if d.Subject == nil {
		return -1
	}
	return d.Subject.Start.Byte
}
