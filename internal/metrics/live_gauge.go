package metrics

import "github.com/prometheus/client_golang/prometheus"

// LiveGauge is a gauge that the daemon raises and lowers where things happen. Adding is
// one atomic operation. A nil gauge counts nothing.
type LiveGauge struct{ gauge prometheus.Gauge }

// LiveGauge registers such a gauge.
func (r *Registry) LiveGauge(name, help string) *LiveGauge {
	if r == nil {
		return nil
	}
	f := r.add(Family{Name: name, Type: GaugeType, Help: help})
	g := &LiveGauge{prometheus.NewGauge(prometheus.GaugeOpts{Name: f.Name, Help: help})}
	r.registry.MustRegister(g.gauge)
	return g
}

// Add adds v, which may be negative.
func (g *LiveGauge) Add(v float64) {
	if g != nil {
		g.gauge.Add(v)
	}
}
