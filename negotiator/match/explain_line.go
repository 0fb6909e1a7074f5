package match

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxBrief is the length to which a brief explanation is cut, in characters, where
// possible.
const maxBrief = 70

// reasonBriefs are the words for the kinds in a list. Earlier kinds are shown first,
// however few machines they have.
var reasonBriefs = []struct {
	kind ReasonKind
	word string
}{
	{OverLimit, "held back"}, {PartOnly, "with room for a part"}, {PortTaken, "without its port"},
	{Busy, "busy"}, {ReservedForEarlier, "held"},
	{Reserved, "reserved"}, {RecentlyRefused, "refusing it"}, {AvoidedPair, "kept apart"},
	{OwnerActive, "used by their owners"}, {TooSmall, "too small"}, {NoMatch, "not matching"}, {OwnPolicy, "unwilling"},
	{Drained, "drained"},
}

// briefText explains the wait in one line: the position, why machines do not run it, and
// when it starts. Example: "wait 41/1200: 12 of 40 nodes busy, 28 too small".
func (t *waitExplainer) briefText(p *negotiationCycle, e *WaitExplanation) string {
	text := fmt.Sprintf("wait %d/%d: ", min(e.UnitsAhead, max(e.UnitsWaiting, 1)-1)+1, e.UnitsWaiting)
	var parts []string
	switch {
	case t.machines == 0:
		parts = []string{"there are no nodes"}
	case t.capable == 0:
		parts = t.briefMismatches(e.Reasons, utf8.RuneCountInString(text))
	case t.request.waitReason != "" && t.request.waitReasonKind != PartOnly:
		parts = []string{t.request.waitReason}
	case t.request.preemption.awaitingVictims > 0:
		parts = []string{"room is being made for it"}
	default:
		parts = t.briefReasons()
	}
	text += parts[0]
	if when := e.StartEstimate.briefText(p); when != "" {
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

// briefReasons counts the machines by kind.
func (t *waitExplainer) briefReasons() (parts []string) {
	for _, k := range reasonBriefs {
		switch n := t.reasonCounts[k.kind]; {
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

// briefMismatches says why no machine can run it: the reasons themselves if there is
// space, else their number by kind.
func (t *waitExplainer) briefMismatches(reasons []WaitReason, used int) []string {
	text := fmt.Sprintf("no node of %d fits: ", t.machines)
	used += utf8.RuneCountInString(text)
	var parts []string
	for _, r := range reasons {
		long := strings.TrimPrefix(strings.TrimPrefix(r.Text, "does not meet Requirements: "),
			"machine's own policy refuses: ")
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
		for _, k := range reasonBriefs {
			if n := t.reasonCounts[k.kind]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, k.word))
			}
		}
	}
	parts[0] = text + parts[0]
	return parts
}
