package whatif

// CellSample is the state of a cell at an instant of the simulation.
type CellSample struct {
	At      int64 // seconds since the checkpoint
	Waiting int   // waiting tasks
	Started int   // tasks started since the checkpoint
	Evicted int   // claims evicted since the checkpoint
}

// addSample records the state of a simulation that began at from. A second has one
// sample, for its end, and only if something has changed.
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

// StartCount is the number of a job's tasks that have started by an instant.
type StartCount struct {
	At    int64 // seconds since the checkpoint
	Tasks int
}

// addStartCount records how many tasks of a job have started, if the number has grown.
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
