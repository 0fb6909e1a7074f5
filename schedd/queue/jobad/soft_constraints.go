package jobad

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// softConstraints are what a job takes of licences, and what it would like of machines
// without needing it. They are for the negotiator, which reads them in the request's ad.
type softConstraints struct {
	concurrencyLimits string
	spread            string
	packages          []string
	prefer            []string
	scatter           bool   // this and those below are no wishes, but the negotiator's to see to as well
	exclusive         bool   // each task has its machine alone
	placementSet      string // the attribute of machines in which those of a gang are the same
}

// softConstraints reads them. digests are of what the job brings: machines that have it
// come first.
func (r *adReader) softConstraints(digests []string) (w softConstraints) {
	w.concurrencyLimits, w.spread = r.text(roost.AttrLimits, ""), r.text(roost.AttrSpread, "")
	if _, err := roost.ParseLimitRequests(w.concurrencyLimits); err != nil {
		r.fail(roost.AttrLimits, err.Error())
	}
	w.scatter, w.exclusive, w.placementSet = r.boolean(roost.AttrScatter, false), r.boolean(roost.AttrExclusive, false),
		r.text(roost.AttrPlacementSet, "")
	if w.placementSet != "" && !attributeName(w.placementSet) {
		r.fail(roost.AttrPlacementSet, fmt.Sprintf("%.80q is not the name of an attribute", w.placementSet))
	}
	w.packages, w.prefer = append(r.list(roost.AttrPackages), digests...), r.list(roost.AttrPrefer)
	w.packages = w.packages[:min(len(w.packages), maxPackages)]
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

// requestKey tells soft constraints apart. Tasks of two jobs that are to be spread are
// not alike: each job is spread for itself.
func (w *softConstraints) requestKey(job roost.JobID) string {
	where := fmt.Sprintf("%v %v %s", w.scatter, w.exclusive, w.placementSet)
	if w.spread == "" {
		return fmt.Sprintf("%q %q %q %s", w.concurrencyLimits, w.packages, w.prefer, where)
	}
	return fmt.Sprintf("%q %q %q %q %s %s", w.concurrencyLimits, w.packages, w.prefer, w.spread, job, where)
}

// describeInAd writes wishes into a request's ad.
func (w *softConstraints) describeInAd(ad *classad.Ad, job roost.JobID) {
	if w.concurrencyLimits != "" {
		ad.SetString(roost.AttrLimits, w.concurrencyLimits)
	}
	if w.spread != "" {
		ad.SetString(roost.AttrSpread, w.spread)
		ad.SetString(roost.AttrJobID, job.String())
	}
	if w.scatter {
		ad.SetBool(roost.AttrScatter, true)
	}
	if w.exclusive {
		ad.SetBool(roost.AttrExclusive, true)
	}
	if w.placementSet != "" {
		ad.SetString(roost.AttrPlacementSet, w.placementSet)
	}
	if len(w.packages) > 0 {
		ad.SetStrings(roost.AttrPackages, w.packages)
	}
	if len(w.prefer) > 0 {
		ad.SetStrings(roost.AttrPrefer, w.prefer)
	}
}
