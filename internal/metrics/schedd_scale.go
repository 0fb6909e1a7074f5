package metrics

// Directions in which services are scaled.
const (
	ScaledHorizontally = iota // the number of tasks
	ScaledVertically          // their size
)

// ScaleUse is what services have that are scaled, and what they want.
type ScaleUse [2]float64

// scaleGauges are the gauges of services that are scaled.
type scaleGauges struct{ tasks, cores, memory *Gauge }

func newScaleGauges(r *Registry) scaleGauges {
	of := Label{Name: "of", Values: []string{"current", "wanted"}}
	return scaleGauges{r.Gauge("autoscale_tasks",
		"Tasks of services whose number of tasks follows their load: that they are to have, and that the load asks "+
			"for.", of),
		r.Gauge("autoscale_cores",
			"Cores of all tasks of services whose tasks' size follows their use: that they ask for, and that the use "+
				"asks for.", of),
		r.Gauge("autoscale_memory_bytes", "Likewise their memory.", of)}
}

func (g scaleGauges) set(to *Reading, s *ScheddSnapshot) {
	for i := range s.ScaledTasks {
		to.Set(g.tasks, s.ScaledTasks[i], i)
		to.Set(g.cores, s.SizedCores[i], i)
		to.Set(g.memory, s.SizedMemory[i], i)
	}
}
