package owner

import "fmt"

// check panics when the core contradicts itself, after Todo.
func (c *Core) check() {
	for i, t := range c.tenants {
		if i > 0 && c.tenants[i-1].ID >= t.ID {
			panic(fmt.Sprintf("claims %d and %d are out of order", c.tenants[i-1].ID, t.ID))
		}
		if (t.activity == Suspended) != t.still && t.activity < Vacating {
			panic(fmt.Sprintf("claim %d is %v, and stands still: %v", t.ID, t.activity, t.still))
		}
		if t.Running && !t.still && c.verdict.stop != "" && t.activity < Vacating {
			panic(fmt.Sprintf("claim %d runs, although: %s", t.ID, c.verdict.stop))
		}
		if t.Running && !t.still && t.activity == Vacating && c.verdict.stop != "" {
			panic(fmt.Sprintf("claim %d leaves running, although: %s", t.ID, c.verdict.stop))
		}
		if t.since > c.now || t.left > c.now {
			panic(fmt.Sprintf("claim %d does something since %v and leaves since %v, and it is %v", t.ID, t.since, t.left, c.now))
		}
	}
	if c.verdict.stop != "" && c.verdict.willing {
		panic("the machine is willing, although: " + c.verdict.stop)
	}
	if len(c.tenants) > 0 && c.state != Claimed && c.state != Preempting {
		panic(fmt.Sprintf("the machine is %v with %d claims", c.state, len(c.tenants)))
	}
	if len(c.tenants) == 0 && (c.state == Claimed || c.state == Preempting) {
		panic(fmt.Sprintf("the machine is %v without a claim", c.state))
	}
}
