package admission

import (
	"errors"
	"fmt"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestCheckReferences: what is known not to be there is refused, and named with what may
// have been meant.
func TestCheckReferences(t *testing.T) {
	names := func(all ...string) *wire.Names { return &wire.Names{Name: all} }
	policy := &wire.Policy{Groups: names("chem", "sci.bio"), Reservations: names("class"),
		Limits: names("matlab", "ansys")}
	nothing := &wire.Policy{Groups: names(), Reservations: names(), Limits: names()}
	many := &wire.Policy{Groups: names()}
	for i := range 25 {
		many.Groups.Name = append(many.Groups.Name, fmt.Sprintf("department%02d", i))
	}
	for _, c := range []struct {
		name   string
		policy *wire.Policy
		ad     string
		want   string // empty: it is taken
	}{
		{"it names nothing", policy, ``, ""},
		{"all is there", policy,
			`AccountingGroup = "chem"; Reservation = "class"; ConcurrencyLimits = "Matlab, ansys:2"`, ""},
		{"it lies below one", policy, `AccountingGroup = "chem.x"`,
			`group chem.x: not found: there is no such group (did you mean "chem"?); there are chem, sci.bio`},
		{"a group", policy, `AccountingGroup = "chme"`,
			`group chme: not found: there is no such group (did you mean "chem"?); there are chem, sci.bio`},
		{"a reservation", policy, `Reservation = "clas"`,
			`reservation clas: not found: there is no such reservation (did you mean "class"?); there are class`},
		{"a limit", policy, `ConcurrencyLimits = "ansys, fluent:2"`,
			`limit fluent: not found: there is no such limit; there are matlab, ansys`},
		{"groups and limits are words", nothing, `AccountingGroup = "chem"; ConcurrencyLimits = "matlab"`, ""},
		{"limits of qsub are none", nothing, `PBS = []; ConcurrencyLimits = "matlab"`,
			`limit matlab: not found: there is no such limit; there are none`},
		{"qsub, and nobody knows", &wire.Policy{}, `PBS = []; ConcurrencyLimits = "matlab"`, ""},
		{"there is no reservation at all", nothing, `Reservation = "class"`,
			`reservation class: not found: there is no such reservation; there are none`},
		{"there are no queues", nothing, `Queue = "long"`,
			`queue long: not found: there is no such queue; there are batch`},
		{"the queue that everybody sees", nothing, `Queue = "batch"`, ""},
		{"nobody knows", &wire.Policy{},
			`Queue = "long"; AccountingGroup = "chem"; Reservation = "class"; ConcurrencyLimits = "matlab"`, ""},
		{"nobody was asked", nil,
			`Queue = "long"; AccountingGroup = "chem"; Reservation = "class"; ConcurrencyLimits = "matlab"`, ""},
		{"many", many, `AccountingGroup = "x"`,
			"group x: not found: there is no such group; there are department00, department01, department02, " +
				"department03, " +
				"department04, department05, department06, department07, department08, department09, department10, " +
				"department11, department12, department13, " +
				"department14, department15, department16, department17, department18, department19, and 5 " +
				"more, which " +
				"roost group lists"},
	} {
		ad, err := classad.Parse("[Cmd = \"/bin/true\"; " + c.ad + "]")
		if err != nil {
			t.Fatal(err)
		}
		spec := queue.SubmitSpec{Ad: ad, Count: 2}
		for prefix, specs := range map[string][]queue.SubmitSpec{"": {spec},
			"job 1 of the submission: ": {{Ad: classad.New(), Count: 1}, spec}} {
			err := CheckReferences(c.policy, specs)
			if c.want == "" && err != nil || c.want != "" &&
				(!errors.Is(err, roost.NotFound) || err.Error() != prefix+c.want) {
				t.Errorf("%s: got %v, want %q", c.name, err, prefix+c.want)
			}
		}
	}
}
