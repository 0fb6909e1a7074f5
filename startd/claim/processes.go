package claim

import "github.com/roost-batch/roost/internal/cgroup"

// Processes are where an attempt's processes are.
type Processes struct {
	Starter int                // process id of the claim's starter; 0: there is none
	Group   *cgroup.ClaimGroup // nil: there is none
}

func (h *Runner) onProcessesCmd(o ProcessesCmd) {
	p := Processes{Group: h.group}
	if h.hasAttempt(o.ID) && h.starter != nil {
		p.Starter = h.starter.PID()
	}
	o.Reply <- p
}
