package submit

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/roost-batch/roost/internal/suggest"
)

// didYouMean returns a sentence that suggests the nearest of the names. If none is near
// and they are few, it lists them.
func didYouMean(name string, names []string) string {
	if best := nearestName(name, names); best != "" {
		return " Did you mean \"" + best + "\"?"
	}
	if len(names) > 0 && len(names) <= 12 {
		return " There is " + strings.Join(names, ", ") + "."
	}
	return ""
}

// nearestName returns the name that a misspelt one was most likely meant to be, or "".
// Case and underscores do not matter.
func nearestName(name string, names []string) string {
	plain := normalizeName(name)
	best, least := "", 1+max(1, len(plain)/3)
	for _, candidate := range names {
		if d := suggest.Distance(plain, normalizeName(candidate)); d < least {
			best, least = candidate, d
		}
	}
	return best
}

func normalizeName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// sortByPlace sorts diagnostics by line and column; those without a place come first.
func sortByPlace(diags hcl.Diagnostics) {
	slices.SortStableFunc(diags, func(a, b *hcl.Diagnostic) int { return diagnosticPlace(a) - diagnosticPlace(b) })
}

func diagnosticPlace(d *hcl.Diagnostic) int {
	if d.Subject == nil {
		return -1
	}
	return d.Subject.Start.Byte
}
