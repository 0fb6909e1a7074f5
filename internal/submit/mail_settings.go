package submit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/roost-batch/roost"
)

// mailEvents are the events that can be mailed, in the order of qsub -m's letters.
var mailEvents = []struct{ name, letter string }{{"abort", "a"}, {"begin", "b"}, {"end", "e"}, {"tasks", "j"}}

const (
	mailEventsHint = "Write a list of abort, begin, end and tasks: mail_on = [\"abort\", \"end\"]."
	mailUsersHint  = "Write a list of addresses: mail_to = [\"ann@example.org\"]."
)

// readMail reads which events are mailed, and the recipients. With only a recipient,
// failures are mailed, as with qsub.
func (b *jobBuilder) readMail() {
	users, at, named := b.constraintReader().constantTextList("mail_to")
	for _, u := range users {
		if u == "" || strings.ContainsAny(u, ", \t\r\n") || strings.HasPrefix(u, "-") {
			b.reportProblem(at, fmt.Sprintf("mail cannot be sent to %q", truncateText(u)), mailUsersHint)
			return
		}
	}
	letters, at, isGiven := b.readChoices("mail_on", mailEventsHint, quotedNames(mailEvents))
	if isGiven && letters == nil && !named || !isGiven && !named {
		return
	}
	on := ""
	for _, p := range mailEvents {
		if slices.Contains(letters, p.name) {
			on += p.letter
		}
	}
	switch {
	case !isGiven:
		on = "a"
	case on == "j":
		b.reportProblem(at, "mail_on has only tasks",
			"It asks for a message about each task: add the events to report. "+mailEventsHint)
		return
	case on == "":
		return // an empty list: no mail
	}
	if strings.Contains(on, "j") && !b.tasks.array {
		b.reportProblem(at, "mail_on has tasks, and the job has one task only",
			"Remove it, or give the job a count. "+mailEventsHint)
		return
	}
	b.ad.SetString(roost.AttrMailPoints, on)
	b.ad.SetString(roost.AttrMailUsers, strings.Join(users, ","))
}

// readChoices reads a list of words, each one of the given words.
func (b *jobBuilder) readChoices(name, hint string, words []string) ([]string, hcl.Range, bool) {
	list, at, ok := b.constraintReader().constantTextList(name)
	if !ok {
		return nil, at, false
	}
	for _, w := range list {
		if !slices.Contains(words, w) {
			b.reportProblem(at, fmt.Sprintf("%s cannot have %q", name, truncateText(w)), hint+nearestHint(w, words))
			return nil, at, false
		}
	}
	return list, at, true
}

func quotedNames(of []struct{ name, letter string }) []string {
	all := make([]string, len(of))
	for i, o := range of {
		all[i] = o.name
	}
	return all
}
