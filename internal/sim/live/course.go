package live

// Instant is how a cell stands at a moment of a play.
type Instant struct {
	At      int64 // seconds from the checkpoint on
	Waiting int   // tasks that wait
	Started int   // tasks that have started since the checkpoint
	Evicted int   // claims that had to go since then
}

// see notes how a play stands that began at from: of each second its end, if something has changed by then.
func (c *Course) see(p *Play, from int64) {
	now := Instant{p.now - from, p.Waiting(), p.started, len(p.Evictions)}
	n := len(c.Instants)
	if n > 0 && c.Instants[n-1].At == now.At {
		c.Instants[n-1] = now
		return
	}
	if n > 0 {
		last := c.Instants[n-1]
		if last.At = now.At; last == now {
			return
		}
	}
	c.Instants = append(c.Instants, now)
}

// Reached is so many tasks of a job that have started by a moment.
type Reached struct {
	At    int64 // seconds from the checkpoint on
	Tasks int
}

// see notes how many tasks of a job have started, if there are more of them than before.
func (a *Answer) see(at int64, tasks int) {
	n := len(a.Course)
	switch {
	case n > 0 && a.Course[n-1].Tasks == tasks:
	case n > 0 && a.Course[n-1].At == at:
		a.Course[n-1].Tasks = tasks
	default:
		a.Course = append(a.Course, Reached{at, tasks})
	}
}
