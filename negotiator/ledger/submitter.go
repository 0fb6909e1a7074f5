package ledger

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/roost-batch/roost/negotiator/share"
)

// Submitter is what an administrator has set for one submitter (condor_userprio -setfactor, -setfloor, -setceiling). What it has used is in the
// book.
type Submitter struct {
	Group   string   `json:"group,omitempty"`
	User    string   `json:"user"`
	Factor  *float64 `json:"factor,omitempty"`  // its priority is worse by this; nil: share.DefaultFactor
	Floor   *Cores   `json:"floor,omitempty"`   // so much it may have before shares are looked at; nil: nothing
	Ceiling *Cores   `json:"ceiling,omitempty"` // more it never has; nil: no bound
}

// mostFactor is HTCondor's NICE_USER_PRIO_FACTOR, and some.
const mostFactor = 1e15

// Of is whom the object is about.
func (s Submitter) Of() share.Submitter { return share.Submitter{Group: s.Group, Owner: s.User} }

func (s Submitter) name() string     { return SubmitterName(s.Of()) }
func (s Submitter) users() []string  { return []string{s.User} }
func (s Submitter) groups() []string { return groupOr(s.Group) }

func (s Submitter) check(*Ledger) error {
	if err := account("a submitter", s.User); err != nil {
		return err
	}
	if f := s.Factor; f != nil && !(*f >= 1 && *f <= mostFactor) {
		return fmt.Errorf("factor %v is not between 1 and %g: %d is what everybody has, and smaller is better", *f, mostFactor, share.DefaultFactor)
	}
	for _, bound := range []struct {
		name  string
		cores *Cores
	}{{"floor", s.Floor}, {"ceiling", s.Ceiling}} {
		if c := bound.cores; c != nil && (*c < 0 || int64(*c) > largest) {
			return fmt.Errorf("%s of %v cores: it is between 0 and %v", bound.name, float64(*c)/1000, float64(largest/1000))
		}
	}
	if s.Ceiling != nil && *s.Ceiling == 0 {
		return errors.New("a ceiling of 0 cores lets it start nothing: set one above 0, or a quota of 0 tasks")
	}
	if s.Floor != nil && s.Ceiling != nil && *s.Floor > *s.Ceiling {
		return fmt.Errorf("floor of %v cores is above the ceiling of %v: lower the one or raise the other", float64(*s.Floor)/1000, float64(*s.Ceiling)/1000)
	}
	return nil
}

// SubmitterName is what a submitter's object is called: "sci.chem/ann", or "ann" of one without a group.
func SubmitterName(s share.Submitter) string {
	if s.Group == "" {
		return s.Owner
	}
	return s.Group + "/" + s.Owner
}

// ParseSubmitter reads SubmitterName's form, and HTCondor's "sci.chem.ann", of which the longest beginning that is a group is taken for it.
func (l *Ledger) ParseSubmitter(name string) share.Submitter {
	if group, owner, ok := strings.Cut(name, "/"); ok {
		return share.Submitter{Group: group, Owner: owner}
	}
	for i := len(name) - 1; i > 0; i-- {
		if name[i] == '.' && l.objects[KindGroup][name[:i]] != nil {
			return share.Submitter{Group: name[:i], Owner: name[i+1:]}
		}
	}
	return share.Submitter{Owner: name}
}

// Submitter is what is set for a submitter; all is nil in that of one for whom nothing is.
func (l *Ledger) Submitter(s share.Submitter) Submitter {
	set, _ := one[Submitter](l, KindSubmitter, SubmitterName(s))
	set.Group, set.User = s.Group, s.Owner
	return set
}

// FloorCeiling is what fair share has to know of a submitter beside its priority, in cores; without a ceiling it is infinite.
func (l *Ledger) FloorCeiling(s share.Submitter) (floor, ceiling float64) {
	set, ceiling := l.Submitter(s), math.Inf(1)
	if set.Floor != nil {
		floor = float64(*set.Floor) / 1000
	}
	if set.Ceiling != nil {
		ceiling = float64(*set.Ceiling) / 1000
	}
	return floor, ceiling
}

// factor brings the book in line with what is set.
func (l *Ledger) factor(name string) {
	s := l.ParseSubmitter(name)
	factor := 0.0 // the default
	if set := l.Submitter(s).Factor; set != nil {
		factor = *set
	}
	l.book.SetFactor(l.time(), s, factor)
}

func groupOr(group string) []string {
	if group == "" {
		return nil
	}
	return []string{group}
}
