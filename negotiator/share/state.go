package share

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/roost-batch/roost"
)

// stateVersion is the version of the format that Save writes.
const stateVersion = 1

type savedBook struct {
	Version  int            `json:"version"`
	Accounts []savedAccount `json:"accounts"`
}

type savedAccount struct {
	Group  string    `json:"group,omitempty"`
	Owner  string    `json:"owner"`
	Real   float64   `json:"priority"`
	Used   float64   `json:"core_seconds"`
	Factor float64   `json:"factor"`
	At     time.Time `json:"at"`
}

// Save writes the book as JSON, in order. What is in use now is not written: after a restart the schedds say it anew.
func (b *Book) Save(now time.Time) ([]byte, error) {
	saved := savedBook{Version: stateVersion}
	for _, s := range b.Submitters() {
		a := b.accounts[s]
		b.advance(a, now)
		saved.Accounts = append(saved.Accounts, savedAccount{s.Group, s.Owner, a.real, a.used, a.factor, a.at.UTC().Round(0)})
	}
	return json.MarshalIndent(saved, "", " ")
}

// Load reads what Save wrote into an empty book. The priorities decay over the time in between as if nothing was used.
func (b *Book) Load(text []byte) error {
	var saved savedBook
	if err := json.Unmarshal(text, &saved); err != nil {
		return fmt.Errorf("usage: %w: %v", roost.Invalid, err)
	}
	if saved.Version != stateVersion {
		return fmt.Errorf("usage: %w: version %d is not one that is known", roost.Invalid, saved.Version)
	}
	for _, a := range saved.Accounts {
		for _, v := range []float64{a.Real, a.Used, a.Factor} {
			if !(v >= 0) || math.IsInf(v, 1) {
				return fmt.Errorf("usage of %s: %w: %v", Submitter{a.Group, a.Owner}, roost.Invalid, v)
			}
		}
		factor := a.Factor
		if factor == 0 {
			factor = DefaultFactor
		}
		b.accounts[Submitter{a.Group, a.Owner}] = &account{real: a.Real, used: a.Used, factor: factor, at: a.At}
	}
	return nil
}
