package metrics

// Startd is the metrics of a startd.
type Startd struct {
	OOMKills      *Counter
	LeasesExpired *Counter
	FreezeTime    *Histogram
	Checks        *HealthChecks
	Chunks        *ChunkCounters
	CachedInput   *Counter // bytes
	Snapshots     *Published[StartdSnapshot]
}

// StartdSnapshot is what an execute node has at one instant.
type StartdSnapshot struct {
	Cores            [AmountStates]float64
	Memory           [AmountStates]float64 // bytes
	BatchTasks       int
	StreamTasks      int
	ThrottledSeconds float64 // of all claims since the start
	PortsHeld        int
	PortsQuarantined int
	PortsBusy        uint64 // that something else on the machine was found to have, since the start
}

// NewStartd registers the metrics of a startd. With a nil registry nothing is counted.
func NewStartd(r *Registry) *Startd {
	s := &Startd{
		OOMKills: r.Counter("oom_kills_total", "Attempts that ended because they needed more memory than they had."),
		LeasesExpired: r.Counter("lease_expired_total",
			"Attempts that ended because their schedd did not renew their lease."),
		FreezeTime: r.Histogram("freeze_seconds",
			"Time from the news that the owner needs the machine until its tasks stood still.", fastBuckets),
	}
	s.Checks = newHealthChecks(r)
	s.Chunks = newChunkCounters(r)
	s.CachedInput = r.Counter("input_cache_read_bytes_total",
		"Bytes of input files that attempts took from the cache of the machine.")
	s.Snapshots = newStartdSnapshots(r)
	r.seal()
	return s
}

func newStartdSnapshots(r *Registry) *Published[StartdSnapshot] {
	cores := r.Gauge("cores", "Cores that the node offers, by state.", amountLabel())
	memory := r.Gauge("memory_bytes", "Memory that the node offers, by state.", amountLabel())
	tasks := r.Gauge("tasks", "Tasks that run, by the class of their application.",
		Label{Name: "class", Values: []string{"batch", "stream"}})
	throttled := r.ReadCounter("throttled_seconds_total",
		"Seconds for which tasks in reclaimed room were held back for others.")
	ports := r.Gauge("ports", "Ports that claims have, or that only the job before may have again.",
		Label{Name: "state", Values: []string{"held", "quarantined"}})
	busy := r.ReadCounter("port_probe_failures_total",
		"Ports that were not given because something else on the machine had them.")
	return newDaemonState(r, func(to *Reading, s *StartdSnapshot) {
		for i := range AmountStates {
			to.Set(cores, s.Cores[i], i)
			to.Set(memory, s.Memory[i], i)
		}
		to.Set(tasks, float64(s.BatchTasks), 0)
		to.Set(tasks, float64(s.StreamTasks), 1)
		to.Set(throttled, s.ThrottledSeconds)
		to.Set(ports, float64(s.PortsHeld), 0)
		to.Set(ports, float64(s.PortsQuarantined), 1)
		to.Set(busy, float64(s.PortsBusy))
	})
}

// CountCachedInput counts bytes of an input file that was in the cache of the machine.
func (s *Startd) CountCachedInput(bytes int64) { s.CachedInput.Add(float64(bytes)) }
