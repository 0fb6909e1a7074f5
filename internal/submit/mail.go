package submit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/roost-batch/roost"
)

// points are what somebody can be told of, in the order of qsub -m's letters.
var points = []struct{ name, letter string }{{"abort", "a"}, {"begin", "b"}, {"end", "e"}, {"tasks", "j"}}

const (
	pointsCure = "Write a list of abort, begin, end and tasks: mail_on = [\"abort\", \"end\"]."
	usersCure  = "Write a list of addresses: mail_to = [\"ann@example.org\"]."
)

// readMail reads what is told of the job, and to whom. Who says only to whom means what goes wrong, as with qsub.
func (b *builder) readMail() {
	users, at, named := b.sameTexts("mail_to")
	for _, u := range users {
		if u == "" || strings.ContainsAny(u, ", \t\r\n") || strings.HasPrefix(u, "-") {
			b.fail(at, fmt.Sprintf("mail cannot be sent to %q", shorten(u)), usersCure)
			return
		}
	}
	letters, at, said := b.choices("mail_on", pointsCure, names(points))
	if said && letters == nil && !named || !said && !named {
		return
	}
	on := ""
	for _, p := range points {
		if slices.Contains(letters, p.name) {
			on += p.letter
		}
	}
	switch {
	case !said:
		on = "a"
	case on == "j":
		b.fail(at, "mail_on has only tasks", "It says that each task is told of by itself: add what of them is to be told. "+pointsCure)
		return
	case on == "":
		return // an empty list: nothing is told
	}
	if strings.Contains(on, "j") && !b.tasks.array {
		b.fail(at, "mail_on has tasks, and the job has one task only", "Remove it, or give the job a count. "+pointsCure)
		return
	}
	b.ad.SetString(roost.AttrMailPoints, on)
	b.ad.SetString(roost.AttrMailUsers, strings.Join(users, ","))
}

// choices reads a list of words of a few.
func (b *builder) choices(name, cure string, words []string) ([]string, hcl.Range, bool) {
	list, at, ok := b.sameTexts(name)
	if !ok {
		return nil, at, false
	}
	for _, w := range list {
		if !slices.Contains(words, w) {
			b.fail(at, fmt.Sprintf("%s cannot have %q", name, shorten(w)), cure+offer(w, words))
			return nil, at, false
		}
	}
	return list, at, true
}

func names(of []struct{ name, letter string }) []string {
	all := make([]string, len(of))
	for i, o := range of {
		all[i] = o.name
	}
	return all
}
