package admission

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// SpentBudgets is the payers whose jobs are refused, because a hard budget is spent. The
// accountant tells them. Without one, or after a start of the schedd until it has called,
// nothing is refused: no submission waits for the accounts.
type SpentBudgets map[accounting.Payer]*wire.SpentBudget

// NewSpentBudgets reads the list of an accountant.
func NewSpentBudgets(m *wire.SpentBudgets) SpentBudgets {
	all := make(SpentBudgets, len(m.GetSpent()))
	for _, b := range m.GetSpent() {
		all[accounting.Payer{Project: b.GetProject(), Group: b.GetGroup(), Owner: b.GetOwner()}] = b
	}
	return all
}

// Refusal returns the refusal of a job whose payer has spent a hard budget, or nil.
func (s SpentBudgets) Refusal(owner string, specs []queue.SubmitSpec, now time.Time) error {
	if len(s) == 0 {
		return nil
	}
	for i := range specs {
		group, _ := specs[i].Ad.Str(roost.AttrGroup)
		payer := accounting.PayerOf(&accounting.JobEntry{Project: jobad.Project(specs[i].Ad), Group: group,
			Owner: owner})
		if b := s[payer]; b != nil && now.UnixMilli() < b.GetUntil() {
			return JobOrdinal(spentError(payer, b), i, specs)
		}
	}
	return nil
}

func spentError(p accounting.Payer, b *wire.SpentBudget) error {
	who := "user " + p.Owner
	if p.Project != "" {
		who = "project " + p.Project
	} else if p.Group != "" {
		who = "group " + p.Group
	}
	return fmt.Errorf("%w: the budget of %s is spent: %s units of %s, until the end of %s; ask an administrator for "+
		"more "+
		"(roost budget), or charge another project or group", roost.Exhausted, who,
		accounting.MicroUnits(b.GetSpent()), accounting.MicroUnits(b.GetAmount()),
		accounting.MonthOf(accounting.Millis(b.GetUntil()-1)))
}
