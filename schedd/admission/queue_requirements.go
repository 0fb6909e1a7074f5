package admission

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// A queue may have its jobs ask for machines of which an administrator has said something
// (PBS: default_chunk.NAME of a string or a boolean, which is how a queue gets nodes of
// its own). It stands beside the job's own Requirements, not in them, so that it can be
// taken back.

// addRequirement notes what machines are to have, unless another extent has said it, or
// the job itself.
func (f *queueDefaults) addRequirement(words map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(words)) {
		if _, stated := f.requirements[name]; stated || f.mentionsAttribute(name) {
			continue
		}
		if f.requirements == nil {
			f.requirements = map[string]string{}
		}
		f.requirements[name] = words[name]
	}
}

// mentionsAttribute reports whether a job's own Requirements mention an attribute of
// machines. It checks the Requirements of the whole job and those of single tasks.
func (f *queueDefaults) mentionsAttribute(name string) bool {
	of := regexp.MustCompile(`(?i)\bTARGET\.` + regexp.QuoteMeta(name) + `\b`)
	if e, ok := f.spec.Ad.Lookup(roost.AttrRequirements); ok && of.MatchString(e.String()) {
		return true
	}
	for _, c := range f.spec.Columns {
		if c.Name == roost.AttrRequirements && slices.ContainsFunc(c.Values, of.MatchString) {
			return true
		}
	}
	return false
}

// setRequirements says in the ad what was noted.
func (f *queueDefaults) setRequirements() {
	f.spec.Ad.Delete(roost.AttrQueueRequires)
	f.defaulted = slices.DeleteFunc(f.defaulted, func(name string) bool { return name == roost.AttrQueueRequires })
	var all []string
	for _, name := range slices.Sorted(maps.Keys(f.requirements)) {
		switch word := f.requirements[name]; {
		case strings.EqualFold(word, "true"):
			all = append(all, "TARGET."+name+" =?= true")
		case strings.EqualFold(word, "false"):
			all = append(all, "TARGET."+name+" =!= true")
		default:
			all = append(all, "TARGET."+name+" == "+classad.StringValue(word).String())
		}
	}
	if len(all) == 0 || f.spec.Ad.SetExpr(roost.AttrQueueRequires, strings.Join(all, " && ")) != nil {
		return
	}
	f.noteDefault(roost.AttrQueueRequires)
}
