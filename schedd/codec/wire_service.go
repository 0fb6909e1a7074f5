package codec

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/autoscale"
)

// WireService is what a machine is told of a task of a service; nil for a task of none.
func WireService(s *queue.ServiceSpec, revision uint32) *wire.ServiceProgram {
	if s == nil {
		return nil
	}
	p := &wire.ServiceProgram{DrainNs: int64(s.Stop.Drain), StopUrl: s.Stop.URL, StopPort: s.Stop.Port,
		Revision: uint64(revision),
		Logs:     &wire.LogBounds{Size: int64(s.Logs.Size), Files: uint32(s.Logs.Files)}}
	if a := s.Autoscale; a != nil && a.Source == autoscale.TaskMetric {
		p.Metric = &wire.MetricSource{Port: a.Port, Path: a.Path, Name: a.Metric, EveryNs: int64(a.Every)}
	}
	for _, c := range s.Checks {
		w := &wire.HealthCheck{
			Name: c.Name, Kind: checkKind(c.Kind), Path: c.Path, Port: c.Port, Live: c.Live, EveryNs: int64(c.Every),
			TimeoutNs: int64(c.Timeout), Fails: uint32(c.Fails), Passes: uint32(c.Passes),
			StartWithinNs: int64(c.StartWithin), Method: c.Method, Headers: c.Headers,
		}
		for _, word := range c.Command {
			w.Command = append(w.Command, []byte(word))
		}
		p.Checks = append(p.Checks, w)
	}
	return p
}

func checkKind(name string) wire.HealthCheck_Kind {
	switch name {
	case "tcp":
		return wire.HealthCheck_KIND_TCP
	case "exec":
		return wire.HealthCheck_KIND_EXEC
	}
	return wire.HealthCheck_KIND_HTTP
}

// ServiceState is a machine's word on an attempt of a service. A failing attempt is not
// ready, and asks to be ended.
func ServiceState(h wire.HealthState) (state roost.ServiceState, failing bool) {
	switch h {
	case wire.HealthState_HEALTH_STATE_READY:
		return roost.ServiceReady, false
	case wire.HealthState_HEALTH_STATE_UNREADY:
		return roost.ServiceUnready, false
	case wire.HealthState_HEALTH_STATE_FAILING:
		return roost.ServiceUnready, true
	case wire.HealthState_HEALTH_STATE_LEAVING:
		return roost.ServiceLeaving, false
	}
	return roost.ServiceStarting, false
}
