package match

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxBrief is how long a brief explanation is at most, in characters, as far as that is possible.
const maxBrief = 70

// kindBrief are the kinds in a list. What stands first is told first, however few machines there are of it.
var kindBrief = []struct {
	kind Kind
	word string
}{
	{Rationed, "held back"}, {Whole, "with room for a part"}, {Busy, "busy"}, {Held, "held"}, {Reserved, "reserved"}, {Refused, "refusing it"}, {Apart, "kept apart"},
	{OwnerActive, "used by their owners"}, {Small, "too small"}, {NoMatch, "not matching"}, {OwnPolicy, "unwilling"}, {Drained, "drained"},
}

// brief says in a line how many tasks come before, what machines there are, and when it starts: "wait 41/1200: 12 of 40 nodes busy, 28 too small".
func (t *tally) brief(p *plan, e *Explanation) string {
	text := fmt.Sprintf("wait %d/%d: ", min(e.Ahead, max(e.Waiting, 1)-1)+1, e.Waiting)
	var parts []string
	switch {
	case t.machines == 0:
		parts = []string{"there are no nodes"}
	case t.capable == 0:
		parts = t.briefMisfits(e.Reasons, utf8.RuneCountInString(text))
	case t.want.held != "" && t.want.heldBy != Whole:
		parts = []string{t.want.held}
	case t.want.hunt.awaits > 0:
		parts = []string{"room is being made for it"}
	default:
		parts = t.briefKinds()
	}
	text += parts[0]
	if when := e.Estimate.brief(p); when != "" {
		parts = slices.Insert(parts, 1, when)
	}
	for _, part := range parts[1:] {
		if utf8.RuneCountInString(text)+2+utf8.RuneCountInString(part) > maxBrief {
			break
		}
		text += ", " + part
	}
	return text
}

// briefKinds counts the machines by kind.
func (t *tally) briefKinds() (parts []string) {
	for _, k := range kindBrief {
		switch n := t.kinds[k.kind]; {
		case n == 0:
		case len(parts) > 0:
			parts = append(parts, fmt.Sprintf("%d %s", n, k.word))
		case n == t.machines && n == 1:
			parts = append(parts, "the only node is "+k.word)
		case n == t.machines:
			parts = append(parts, fmt.Sprintf("all %d nodes %s", n, k.word))
		default:
			parts = append(parts, fmt.Sprintf("%d of %d nodes %s", n, t.machines, k.word))
		}
	}
	return parts
}

// briefMisfits says why no machine can run it: the reasons themselves while there is space, else how many there are of a kind.
func (t *tally) briefMisfits(reasons []Reason, used int) []string {
	text := fmt.Sprintf("no node of %d fits: ", t.machines)
	used += utf8.RuneCountInString(text)
	var parts []string
	for _, r := range reasons {
		long := strings.TrimPrefix(strings.TrimPrefix(r.Text, "does not meet Requirements: "), "machine's own policy refuses: ")
		if r.Kind == NoMatch {
			long = "not " + long
		}
		if long = fmt.Sprintf("%d %s", r.Machines, long); used+utf8.RuneCountInString(long) > maxBrief {
			parts = parts[:0]
			break
		}
		parts = append(parts, long)
		used += 2 + utf8.RuneCountInString(long)
	}
	if len(parts) == 0 {
		for _, k := range kindBrief {
			if n := t.kinds[k.kind]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, k.word))
			}
		}
	}
	parts[0] = text + parts[0]
	return parts
}
