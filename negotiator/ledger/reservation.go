package ledger

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// AdvanceReservation reserves a part of the pool for a period (PBS: pbs_rsub).
type AdvanceReservation struct {
	Name   string          `json:"name"`
	Users  []string        `json:"users,omitempty"`
	Groups []string        `json:"groups,omitempty"` // with Users: the groups whose jobs may run in it
	Nodes  []string        `json:"nodes,omitempty"`  // the machines, whole
	Amount *ResourceBounds `json:"amount,omitempty"` // or this amount, on any machine
	Reason string          `json:"reason,omitempty"`
	// Deleting marks a reservation that reserves nothing any more and admits no new job.
	// The schedds remove its jobs; when none is left the reservation is removed, too.
	Deleting bool `json:"deleting,omitempty"`
	Period
}

// AutomaticDrainReason begins the reasons of drains that the negotiators make themselves,
// of machines on which tasks fail.
const AutomaticDrainReason = "drained by itself: "

// MachineDrain excludes a machine from new tasks for a period.
type MachineDrain struct {
	Node   string `json:"node"`
	Reason string `json:"reason,omitempty"`
	// Evict has the tasks of services go elsewhere, within the budgets of their jobs.
	Evict bool `json:"evict,omitempty"`
	// Deadline is when all tasks end that still run there; zero: never.
	Deadline time.Time `json:"deadline,omitzero"`
	Period
}

// maxReason bounds the texts that people write, in bytes.
const maxReason = 1000

func (r AdvanceReservation) name() string     { return r.Name }
func (r AdvanceReservation) users() []string  { return r.Users }
func (r AdvanceReservation) groups() []string { return r.Groups }

func (r AdvanceReservation) check(l *Ledger) error {
	if err := checkPlainName("a reservation", r.Name); err != nil {
		return err
	}
	if len(r.Users)+len(r.Groups) == 0 {
		return errors.New("it is for nobody: name the users or groups that may use it")
	}
	if r.From.IsZero() || r.Until.IsZero() {
		return errors.New("a reservation begins and ends: give both times")
	}
	switch {
	case len(r.Nodes) > 0 && r.Amount != nil:
		return exclusiveFieldsError("nodes", "an amount")
	case len(r.Nodes) == 0 && (r.Amount == nil || len(r.Amount.Bounds()) == 0):
		return errors.New("it reserves nothing: name nodes, or an amount of cpus, memory, disk or gpus")
	case r.Amount != nil && r.Amount.allZero():
		return errors.New("it reserves nothing: 0 is no amount")
	case r.Amount != nil && r.Amount.Tasks != nil:
		return errors.New("tasks cannot be reserved: give an amount of cpus, memory, disk or gpus")
	}
	if r.Amount != nil {
		if err := r.Amount.check(); err != nil {
			return err
		}
	}
	if r.Deleting { // the period may be over already
		return errors.Join(checkAccountNames("a user", r.Users), checkAccountNames("a node", r.Nodes),
			checkReason(r.Reason))
	}
	err := errors.Join(r.Period.check(l.clockTime()), checkAccountNames("a user", r.Users),
		checkAccountNames("a node", r.Nodes), checkReason(r.Reason))
	if err != nil {
		return err
	}
	for o := range objectValues[AdvanceReservation](l, KindReservation) {
		for _, node := range o.Nodes {
			if o.Name != r.Name && !o.Deleting && o.overlaps(r.Period) && slices.Contains(r.Nodes, node) {
				return fmt.Errorf("%s is already in reservation %s %s: take another node, or another time",
					node, o.Name,
					o.Period.Text())
			}
		}
	}
	return nil
}

func (d MachineDrain) name() string     { return d.Node }
func (d MachineDrain) users() []string  { return nil }
func (d MachineDrain) groups() []string { return nil }

func (d MachineDrain) check(l *Ledger) error {
	if !d.Deadline.IsZero() {
		end := Period{From: d.Deadline}
		if err := end.check(l.clockTime()); err != nil {
			return err
		}
		if d.Deadline.Before(d.From) || !d.Until.IsZero() && d.Deadline.After(d.Until) {
			return fmt.Errorf("its deadline %s is outside of the drain, which is %s: give a deadline between these",
				timeText(d.Deadline), d.Period.Text())
		}
	}
	return errors.Join(checkAccountName("a node", d.Node), d.Period.check(l.clockTime()), checkReason(d.Reason))
}

func checkReason(text string) error {
	if len(text) > maxReason {
		return fmt.Errorf("the reason has %d characters, and %d is the most", len(text), maxReason)
	}
	return nil
}

// Reservations lists the reservations by name, including those that are over.
func (l *Ledger) Reservations() []AdvanceReservation {
	return slices.Collect(objectValues[AdvanceReservation](l, KindReservation))
}

// Drains lists the drains by node, including those that are over.
func (l *Ledger) Drains() []MachineDrain {
	return slices.Collect(objectValues[MachineDrain](l, KindDrain))
}
