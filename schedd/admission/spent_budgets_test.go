package admission

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestSpentBudgets refuses jobs by who pays for them, with the numbers, until the
// budget's last month ends.
func TestSpentBudgets(t *testing.T) {
	const march = 1772323200000 // 2026-03-01T00:00:00Z
	end := accounting.MonthOf(march).End()
	spent := &wire.SpentBudgets{Spent: []*wire.SpentBudget{
		{Project: "ocean", Amount: 100e6, Spent: 120_500_000, Until: int64(end)},
		{Owner: "ann", Amount: 1e6, Spent: 1e6, Until: int64(end)},
		{Group: "chem", Amount: 0, Spent: 0, Until: int64(end)},
	}}
	refusal := func(s SpentBudgets, owner, text string, at int64) error {
		t.Helper()
		ad, err := classad.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return s.Refusal(owner, []queue.SubmitSpec{{Ad: ad, Count: 1}}, time.UnixMilli(at))
	}
	var s SpentBudgets
	if err := refusal(s, "ann", "[]", march); err != nil {
		t.Errorf("before the accountant has called: %v", err)
	}
	s = NewSpentBudgets(spent)
	for _, c := range []struct {
		owner, ad, want string
		at              int64
	}{
		{"ann", "[]", "user ann is spent: 1 units of 1, until the end of 2026-03", march},
		{"ann", "[]", "", int64(end)},
		{"bob", "[]", "", march},
		{"bob", `[PBS = [Account_Name = "ocean"]]`, "project ocean is spent: 120.5 units of 100", march},
		{"ann", `[PBS = [project = "_pbs_project_default"]]`, "user ann", march},
		{"ann", `[PBS = [Account_Name = "land"]; AccountingGroup = "chem"]`, "", march},
		{"ann", `[AccountingGroup = "chem"]`, "group chem is spent: 0 units of 0", march},
		{"ann", `[AccountingGroup = "chem.x"]`, "", march},
	} {
		err := refusal(s, c.owner, c.ad, c.at)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, roost.Exhausted) ||
			!strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %s: got %v, want %q", c.owner, c.ad, err, c.want)
		}
	}
	s = NewSpentBudgets(&wire.SpentBudgets{})
	if err := refusal(s, "ann", "[]", march); err != nil {
		t.Errorf("after the budgets were raised: %v", err)
	}
}
