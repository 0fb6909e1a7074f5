package ledger

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/roost-batch/roost/negotiator/fairshare"
)

// SubmitterPolicy is what an administrator has set for one submitter (condor_userprio
// -setfactor, -setfloor, -setceiling). What it has used is in the book.
type SubmitterPolicy struct {
	Group   string     `json:"group,omitempty"`
	User    string     `json:"user"`
	Factor  *float64   `json:"factor,omitempty"`  // its priority is worse by this; nil: fairshare.DefaultFactor
	Floor   *CoreCount `json:"floor,omitempty"`   // so much it may have before shares are looked at; nil: nothing
	Ceiling *CoreCount `json:"ceiling,omitempty"` // more it never has; nil: no bound
}

// maxFactor is HTCondor's NICE_USER_PRIO_FACTOR, and some.
const maxFactor = 1e15

// Submitter is whom the object is about.
func (s SubmitterPolicy) Submitter() fairshare.Submitter {
	return fairshare.Submitter{Group: s.Group, Owner: s.User}
}

func (s SubmitterPolicy) name() string     { return SubmitterName(s.Submitter()) }
func (s SubmitterPolicy) users() []string  { return []string{s.User} }
func (s SubmitterPolicy) groups() []string { return groupOrNone(s.Group) }

func (s SubmitterPolicy) check(*Ledger) error {
	if err := checkAccountName("a submitter", s.User); err != nil {
		return err
	}
	if f := s.Factor; f != nil && !(*f >= 1 && *f <= maxFactor) {
		return fmt.Errorf("factor %v is not between 1 and %g: %d is what everybody has, and smaller is better",
			*f, maxFactor, fairshare.DefaultFactor)
	}
	for _, bound := range []struct {
		name  string
		cores *CoreCount
	}{{"floor", s.Floor}, {"ceiling", s.Ceiling}} {
		if c := bound.cores; c != nil && (*c < 0 || int64(*c) > maxAmount) {
			return fmt.Errorf("%s of %v cores: it is between 0 and %v", bound.name, float64(*c)/1000,
				float64(maxAmount/1000))
		}
	}
	if s.Ceiling != nil && *s.Ceiling == 0 {
		return errors.New("a ceiling of 0 cores lets it start nothing: set one above 0, or a quota of 0 tasks")
	}
	if s.Floor != nil && s.Ceiling != nil && *s.Floor > *s.Ceiling {
		return fmt.Errorf("floor of %v cores is above the ceiling of %v: lower the one or raise the other",
			float64(*s.Floor)/1000, float64(*s.Ceiling)/1000)
	}
	return nil
}

// SubmitterName is what a submitter's object is called: "sci.chem/ann", or "ann" of one
// without a group.
func SubmitterName(s fairshare.Submitter) string {
	if s.Group == "" {
		return s.Owner
	}
	return s.Group + "/" + s.Owner
}

// ParseSubmitter reads SubmitterName's form, and HTCondor's "sci.chem.ann", of which the
// longest beginning that is a group is taken for it.
func (l *Ledger) ParseSubmitter(name string) fairshare.Submitter {
	if group, owner, ok := strings.Cut(name, "/"); ok {
		return fairshare.Submitter{Group: group, Owner: owner}
	}
	for i := len(name) - 1; i > 0; i-- {
		if name[i] == '.' && l.objects[KindGroup][name[:i]] != nil {
			return fairshare.Submitter{Group: name[:i], Owner: name[i+1:]}
		}
	}
	return fairshare.Submitter{Owner: name}
}

// Submitter is what is set for a submitter; all is nil in that of one for whom nothing
// is.
func (l *Ledger) Submitter(s fairshare.Submitter) SubmitterPolicy {
	set, _ := objectNamed[SubmitterPolicy](l, KindSubmitter, SubmitterName(s))
	set.Group, set.User = s.Group, s.Owner
	return set
}

// FloorCeiling is what fair share has to know of a submitter beside its priority, in
// cores; without a ceiling it is infinite.
func (l *Ledger) FloorCeiling(s fairshare.Submitter) (floor, ceiling float64) {
	set, ceiling := l.Submitter(s), math.Inf(1)
	if set.Floor != nil {
		floor = float64(*set.Floor) / 1000
	}
	if set.Ceiling != nil {
		ceiling = float64(*set.Ceiling) / 1000
	}
	return floor, ceiling
}

// applyFactors brings the book in line with what is set.
func (l *Ledger) applyFactors(name string) {
	s := l.ParseSubmitter(name)
	factor := 0.0 // the default
	if set := l.Submitter(s).Factor; set != nil {
		factor = *set
	}
	l.accountant.SetFactor(l.clockTime(), s, factor)
}

func groupOrNone(group string) []string {
	if group == "" {
		return nil
	}
	return []string{group}
}
