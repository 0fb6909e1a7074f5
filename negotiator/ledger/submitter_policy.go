package ledger

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/roost-batch/roost/negotiator/fairshare"
)

// SubmitterPolicy is what an administrator has set for one submitter (condor_userprio
// -setfactor, -setfloor, -setceiling). The accounts contain its usage.
type SubmitterPolicy struct {
	Group string `json:"group,omitempty"`
	User  string `json:"user"`
	// multiplies the priority value, larger is worse; nil: fairshare.DefaultFactor
	Factor  *float64   `json:"factor,omitempty"`
	Floor   *CoreCount `json:"floor,omitempty"`   // cores it gets before fair share applies; nil: none
	Ceiling *CoreCount `json:"ceiling,omitempty"` // cores it may use at most; nil: no bound
}

// maxFactor is above HTCondor's NICE_USER_PRIO_FACTOR.
const maxFactor = 1e15

// Submitter returns the submitter of the policy.
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
			return fmt.Errorf("%s of %v cores: it must be between 0 and %v", bound.name, float64(*c)/1000,
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

// SubmitterName returns the name of a submitter's object: "sci.chem/ann", or "ann"
// without a group.
func SubmitterName(s fairshare.Submitter) string {
	if s.Group == "" {
		return s.Owner
	}
	return s.Group + "/" + s.Owner
}

// ParseSubmitter parses the form of SubmitterName and HTCondor's "sci.chem.ann". The
// longest prefix that names a group is the group.
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

// Submitter returns the policy for a submitter, with all bounds nil if none is set.
func (l *Ledger) Submitter(s fairshare.Submitter) SubmitterPolicy {
	set, _ := objectNamed[SubmitterPolicy](l, KindSubmitter, SubmitterName(s))
	set.Group, set.User = s.Group, s.Owner
	return set
}

// FloorCeiling returns the floor and the ceiling of a submitter, in cores. Without a
// ceiling it is infinite.
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

// applyFactors updates the factor in the submitter's account.
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
