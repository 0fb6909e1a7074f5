package jobad

import (
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// RevisionEffect is what a change of a service does to its tasks.
type RevisionEffect uint8

// The effects, the greatest last.
const (
	NoEffect    RevisionEffect = iota
	InPlace                    // tasks go on as they are
	ResizeTask                 // each task becomes larger or smaller where it is, if its machine has room
	MatchTask                  // each task stays where it is, if its machine satisfies the requirements
	RestartTask                // each task is stopped and started again
	Refused                    // it would be another job
)

var revisionEffectNames = [...]string{NoEffect: "nothing", InPlace: "in place", ResizeTask: "resize",
	MatchTask: "match", RestartTask: "restart", Refused: "refused"}

// String returns the word that users read.
func (e RevisionEffect) String() string { return revisionEffectNames[e] }

// inPlaceAttrs are the attributes that no attempt depends on. The queue and the next
// cycle of the negotiator read them (Borg 2.3 changes priorities without a restart).
var inPlaceAttrs = []string{
	roost.AttrBand, roost.AttrPriority, roost.AttrGroup, roost.AttrLabels, roost.AttrNoticePeriod,
	roost.AttrRank, roost.AttrMailPoints, roost.AttrMailUsers, roost.AttrUpdate, roost.AttrService, roost.AttrLogs,
	roost.AttrStartAfter, roost.AttrHoldOnSubmit, roost.AttrCellQueue, roost.AttrJobLease, roost.AttrAlterations,
	roost.AttrTaskCount, AttrArray, roost.AttrAutoscale, roost.AttrVerticalAutoscale, roost.AttrPrefer,
}

// effectOf returns what a change of one attribute does.
func effectOf(name string, fixed []string) RevisionEffect {
	has := func(list []string) bool {
		return slices.ContainsFunc(list, func(a string) bool { return strings.EqualFold(a, name) })
	}
	switch {
	case has(inPlaceAttrs):
		return InPlace
	case strings.EqualFold(name, roost.AttrRequestCpus), strings.EqualFold(name, roost.AttrRequestMemory):
		return ResizeTask
	case strings.EqualFold(name, roost.AttrRequirements):
		return MatchTask
	case has(fixed), strings.EqualFold(name, roost.AttrJobName):
		return Refused
	}
	return RestartTask
}

// AttributeEffect is a changed attribute and what that does.
type AttributeEffect struct {
	Name   string
	Effect RevisionEffect
}

// RevisionChanges lists what a new ad of a job changes, and the greatest effect. The
// fixed attributes say what the job is, and cannot change.
func RevisionChanges(before, after *classad.Ad, fixed []string) (list []AttributeEffect, greatest RevisionEffect) {
	for _, name := range Difference(before, after).Names() {
		e := effectOf(name, fixed)
		list, greatest = append(list, AttributeEffect{name, e}), max(greatest, e)
	}
	return list, greatest
}

// NewRevisionAd is what a job becomes by the ad of a job file. What the schedd and the
// job's queue have added stays, and so do the fixed attributes.
func NewRevisionAd(before, file *classad.Ad, fixed []string) *classad.Ad {
	after := file.Copy()
	added := append(slices.Clone(fixed), roost.AttrQueue, roost.AttrQueueDefaults, roost.AttrQueueRequires,
		roost.AttrReservation, AttrArray)
	defaults, _ := before.Strings(roost.AttrQueueDefaults)
	for _, name := range added {
		after.Delete(name)
		if e, ok := before.Lookup(name); ok {
			after.Insert(name, e)
		}
	}
	for _, name := range defaults {
		if _, stated := after.Lookup(name); !stated {
			if e, ok := before.Lookup(name); ok {
				after.Insert(name, e)
			}
		}
	}
	return after
}

// HasSameRequirements reports whether the machines that satisfy the requirements of two
// jobs are the same.
func (p *JobSpec) HasSameRequirements(other *JobSpec) bool {
	return p.requirements == other.requirements && p.queueRequirements == other.queueRequirements
}
