package ledger

import (
	"fmt"
	"slices"
	"strings"
)

// Limit is how many of a licence, or of anything else that machines do not have, may be in use in the pool at once (HTCondor: X_LIMIT).
type Limit struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

func (m Limit) name() string     { return m.Name }
func (m Limit) users() []string  { return nil }
func (m Limit) groups() []string { return nil }

func (m Limit) check(*Ledger) error {
	if err := dotted("a limit", m.Name); err != nil {
		return err
	}
	if m.Name != strings.ToLower(m.Name) {
		return fmt.Errorf("names of limits are in small letters, as jobs may write them in any: call it %q", strings.ToLower(m.Name))
	}
	if m.Count < 0 || m.Count > mostCount {
		return fmt.Errorf("a count of %d: it is between 0, which lets nobody have one, and %d", m.Count, mostCount)
	}
	return nil
}

// Limits lists the limits by name.
func (l *Ledger) Limits() []Limit { return slices.Collect(things[Limit](l, KindLimit)) }
