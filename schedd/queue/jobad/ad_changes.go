package jobad

import (
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// ApplyChanges puts changes into an ad.
func ApplyChanges(ad, changes *classad.Ad) {
	for name, e := range changes.All() {
		if e.String() == undefinedText {
			ad.Delete(name)
		} else {
			ad.Insert(name, e)
		}
	}
}

// undefinedText stands for what an attribute is that is to go.
const undefinedText = "undefined"

// Difference is what makes an ad of another.
func Difference(before, after *classad.Ad) *classad.Ad {
	changes := classad.New()
	for name, e := range after.All() {
		if was, ok := before.Lookup(name); !ok || was.String() != e.String() {
			changes.Insert(name, e)
		}
	}
	for _, name := range before.Names() {
		if _, ok := after.Lookup(name); !ok {
			changes.SetValue(name, classad.UndefinedValue())
		}
	}
	return changes
}

// DescribeChanges says in a line what is changed. What may be secret is named and not
// shown.
func DescribeChanges(changes *classad.Ad) string {
	var parts []string
	for name, e := range changes.All() {
		value := e.String()
		switch {
		case name == roost.AttrPBS || name == roost.AttrSlurm:
			continue
		case name == roost.AttrEnvironment || name == roost.AttrScript || name == roost.AttrArguments ||
			len(value) > maxListedValue:
			parts = append(parts, name)
		default:
			parts = append(parts, name+" = "+value)
		}
	}
	text := strings.Join(parts, ", ")
	if len(text) > maxListedChanges {
		text = strings.ToValidUTF8(text[:maxListedChanges], "") + "…"
	}
	return text
}

// Bounds on what the job's log says of an alteration.
const (
	maxListedChanges = 300
	maxListedValue   = 60
)
