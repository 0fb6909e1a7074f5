package queue

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// wishes are what a job takes of licences, and what it would like of machines without needing it. They are for the negotiator, which reads
// them in the request's ad.
type wishes struct {
	limits   string
	spread   string
	packages []string
	prefer   []string
	apart    bool   // this and those below are no wishes, but the negotiator's to see to as well
	alone    bool   // each task has its machine alone
	together string // the attribute of machines in which those of a gang are the same
}

func (r *reader) wishes() (w wishes) {
	w.limits, w.spread = r.text(roost.AttrLimits, ""), r.text(roost.AttrSpread, "")
	if _, err := roost.ParseLicences(w.limits); err != nil {
		r.fail(roost.AttrLimits, err.Error())
	}
	w.apart, w.alone, w.together = r.truth(roost.AttrApart, false), r.truth(roost.AttrExclusive, false), r.text(roost.AttrTogether, "")
	if w.together != "" && !attributeName(w.together) {
		r.fail(roost.AttrTogether, fmt.Sprintf("%.80q is not the name of an attribute", w.together))
	}
	w.packages, w.prefer = r.list(roost.AttrPackages), r.list(roost.AttrPrefer)
	for _, text := range w.prefer {
		if _, err := classad.ParseExpr(text); err != nil {
			r.fail(roost.AttrPrefer, fmt.Sprintf("%.80q: %v", text, err))
		}
	}
	return w
}

// attributeName reports whether that can be the name of an attribute without quotes.
func attributeName(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c|0x20 < 'a' || c|0x20 > 'z') && c != '_' && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

// maxList bounds the lists of an ad that are kept in memory.
const maxList = 64

func (r *reader) list(name string) []string {
	if !r.has(name) {
		return nil
	}
	list, ok := r.ad.Strings(name)
	if !ok || len(list) > maxList {
		r.fail(name, fmt.Sprintf("a list of at most %d strings is wanted", maxList))
	}
	return list
}

// key tells wishes apart. Tasks of two jobs that are to be spread are not alike: each job is spread for itself.
func (w *wishes) key(job roost.JobID) string {
	where := fmt.Sprintf("%v %v %s", w.apart, w.alone, w.together)
	if w.spread == "" {
		return fmt.Sprintf("%q %q %q %s", w.limits, w.packages, w.prefer, where)
	}
	return fmt.Sprintf("%q %q %q %q %s %s", w.limits, w.packages, w.prefer, w.spread, job, where)
}

// describe writes wishes into a request's ad.
func (w *wishes) describe(ad *classad.Ad, job roost.JobID) {
	if w.limits != "" {
		ad.SetString(roost.AttrLimits, w.limits)
	}
	if w.spread != "" {
		ad.SetString(roost.AttrSpread, w.spread)
		ad.SetString(roost.AttrJobID, job.String())
	}
	if w.apart {
		ad.SetBool(roost.AttrApart, true)
	}
	if w.alone {
		ad.SetBool(roost.AttrExclusive, true)
	}
	if w.together != "" {
		ad.SetString(roost.AttrTogether, w.together)
	}
	if len(w.packages) > 0 {
		ad.SetStrings(roost.AttrPackages, w.packages)
	}
	if len(w.prefer) > 0 {
		ad.SetStrings(roost.AttrPrefer, w.prefer)
	}
}
