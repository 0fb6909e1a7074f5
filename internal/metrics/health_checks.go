package metrics

import "time"

// HealthChecks is the metrics of a machine's health checks.
type HealthChecks struct {
	results  *Counter
	duration *Histogram
}

func newHealthChecks(r *Registry) *HealthChecks {
	kind := Label{Name: "kind", Values: []string{"http", "tcp", "exec"}}
	return &HealthChecks{
		results: r.Counter("check_results_total", "Health checks of services that were run, by kind and result.", kind,
			Label{Name: "result", Values: []string{"passed", "failed", "unknown"}}),
		duration: r.Histogram("check_seconds", "Time that a health check took whose result is known, by kind.",
			fastBuckets, kind),
	}
}

// Count counts a run of a check. The numbers are indexes of the labels' values. The time
// of a run with an unknown result (2) says nothing.
func (h *HealthChecks) Count(kind, result int, duration time.Duration) {
	h.results.Inc(kind, result)
	if result != 2 {
		h.duration.Observe(duration, kind)
	}
}
