package fairshare

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// stateVersion is the version of the format that Save writes.
const stateVersion = 1

type savedAccountant struct {
	Version  int            `json:"version"`
	Accounts []savedAccount `json:"accounts"`
}

type savedAccount struct {
	Group        string    `json:"group,omitempty"`
	Owner        string    `json:"owner"`
	RealPriority float64   `json:"priority"`
	CoreSeconds  float64   `json:"core_seconds"`
	Factor       float64   `json:"factor"`
	At           time.Time `json:"at"`
}

// Save writes the accounts as JSON, in order. The present usage is not written: after a
// restart the schedds report it again.
func (b *Accountant) Save(now time.Time) ([]byte, error) {
	saved := savedAccountant{Version: stateVersion}
	for _, s := range b.Submitters() {
		a := b.Account(now, s)
		saved.Accounts = append(saved.Accounts,
			savedAccount{s.Group, s.Owner, a.Real, a.Used, a.Factor, time.Unix(0, a.At).UTC()})
	}
	return json.MarshalIndent(saved, "", " ")
}

// Load reads what Save wrote into an empty accountant. The priorities decay over the time
// between as if nothing was used.
func (b *Accountant) Load(text []byte) error {
	var saved savedAccountant
	if err := json.Unmarshal(text, &saved); err != nil {
		return fmt.Errorf("usage: %w: %v", roost.Invalid, err)
	}
	if saved.Version != stateVersion {
		return fmt.Errorf("usage: %w: version %d is not one that is known", roost.Invalid, saved.Version)
	}
	for _, a := range saved.Accounts {
		if a.Factor == 0 {
			a.Factor = DefaultFactor
		}
		if err := b.PutAccount(SubmitterAccount{Submitter: Submitter{a.Group, a.Owner}, Real: a.RealPriority,
			Used: a.CoreSeconds, Factor: a.Factor, At: a.At.UnixNano()}); err != nil {
			return err
		}
	}
	return nil
}

// PutAccount stores a saved account, in place of the submitter's own. It refuses an
// invalid one.
func (b *Accountant) PutAccount(a SubmitterAccount) error {
	if !a.isValid() {
		return fmt.Errorf("account of %s: %w: what was kept makes no sense: %+v", a.Submitter, roost.Invalid, a)
	}
	b.accounts[a.Submitter] = &a
	return nil
}

// Accounts lists all accounts as they are stored, each as of its own instant, in order.
// PutAccount makes an equal accountant of them, bit for bit.
func (b *Accountant) Accounts() []SubmitterAccount {
	all := make([]SubmitterAccount, 0, len(b.accounts))
	for _, s := range b.Submitters() {
		all = append(all, *b.accounts[s])
	}
	return all
}
