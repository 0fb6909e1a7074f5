package ledger

import (
	"fmt"
	"slices"
	"strings"
)

// ConcurrencyLimit bounds the units of a licence, or of another resource outside the
// machines, in use at once (HTCondor: X_LIMIT). It applies to the whole pool.
type ConcurrencyLimit struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

func (m ConcurrencyLimit) name() string     { return m.Name }
func (m ConcurrencyLimit) users() []string  { return nil }
func (m ConcurrencyLimit) groups() []string { return nil }

func (m ConcurrencyLimit) check(*Ledger) error {
	if err := checkDottedName("a limit", m.Name); err != nil {
		return err
	}
	if m.Name != strings.ToLower(m.Name) {
		return fmt.Errorf("names of limits are in small letters, as jobs may write them in any: call it %q",
			strings.ToLower(m.Name))
	}
	if m.Count < 0 || m.Count > maxCount {
		return fmt.Errorf("a count of %d: it must be between 0, which lets nobody have one, and %d",
			m.Count, maxCount)
	}
	return nil
}

// Limits lists the limits by name.
func (l *Ledger) Limits() []ConcurrencyLimit {
	return slices.Collect(objectValues[ConcurrencyLimit](l, KindLimit))
}
