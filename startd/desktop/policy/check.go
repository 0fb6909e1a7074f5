package policy

import "fmt"

// check panics if the state is inconsistent after Todo.
func (c *PolicyCore) check() {
	for i, t := range c.claims {
		if i > 0 && c.claims[i-1].ID >= t.ID {
			panic(fmt.Sprintf("claims %d and %d are out of order", c.claims[i-1].ID, t.ID))
		}
		if (t.activity == Suspended) != t.frozen && t.activity < Vacating {
			panic(fmt.Sprintf("claim %d is %v, and stands still: %v", t.ID, t.activity, t.frozen))
		}
		if t.Running && !t.frozen && c.verdict.stopReason != "" && t.activity < Vacating {
			panic(fmt.Sprintf("claim %d runs, although: %s", t.ID, c.verdict.stopReason))
		}
		if t.Running && !t.frozen && t.activity == Vacating && c.verdict.stopReason != "" {
			panic(fmt.Sprintf("claim %d leaves running, although: %s", t.ID, c.verdict.stopReason))
		}
		if t.since > c.now || t.vacateAt > c.now {
			panic(fmt.Sprintf("claim %d does something since %v and leaves since %v, and it is %v", t.ID, t.since,
				t.vacateAt, c.now))
		}
	}
	if c.verdict.stopReason != "" && c.verdict.available {
		panic("the machine is willing, although: " + c.verdict.stopReason)
	}
	if len(c.claims) > 0 && c.state != Claimed && c.state != Preempting {
		panic(fmt.Sprintf("the machine is %v with %d claims", c.state, len(c.claims)))
	}
	if len(c.claims) == 0 && (c.state == Claimed || c.state == Preempting) {
		panic(fmt.Sprintf("the machine is %v without a claim", c.state))
	}
}
