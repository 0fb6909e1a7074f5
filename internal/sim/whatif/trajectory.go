package whatif

// CellSample is how a cell stands at a moment of a play.
type CellSample struct {
	At      int64 // seconds from the checkpoint on
	Waiting int   // tasks that wait
	Started int   // tasks that have started since the checkpoint
	Evicted int   // claims that had to go since then
}

// addSample notes how a play stands that began at from: of each second its end, if
// something has changed by then.
func (c *Trajectory) addSample(p *Simulation, from int64) {
	now := CellSample{p.now - from, p.WaitingUnits(), p.started, len(p.Evictions)}
	n := len(c.Samples)
	if n > 0 && c.Samples[n-1].At == now.At {
		c.Samples[n-1] = now
		return
	}
	if n > 0 {
		last := c.Samples[n-1]
		if last.At = now.At; last == now {
			return
		}
	}
	c.Samples = append(c.Samples, now)
}

// StartCount is so many tasks of a job that have started by a moment.
type StartCount struct {
	At    int64 // seconds from the checkpoint on
	Tasks int
}

// addStartCount notes how many tasks of a job have started, if there are more of them
// than before.
func (a *StartAnswer) addStartCount(at int64, tasks int) {
	n := len(a.StartCounts)
	switch {
	case n > 0 && a.StartCounts[n-1].Tasks == tasks:
	case n > 0 && a.StartCounts[n-1].At == at:
		a.StartCounts[n-1].Tasks = tasks
	default:
		a.StartCounts = append(a.StartCounts, StartCount{at, tasks})
	}
}
