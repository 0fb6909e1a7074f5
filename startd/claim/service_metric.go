package claim

import (
	"context"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/probe"
)

// Bounds on how often and for how long the metric of a task is read, whatever a schedd
// sends.
const (
	minMetricEvery = time.Second
	maxMetricEvery = time.Hour
	metricTimeout  = 5 * time.Second
	maxProblem     = 200 // bytes of why there is no value
)

// startMetric begins to read the metric by which the service of an attempt is scaled. A
// machine reads the ports of its own tasks only.
func (h serviceRunner) startMetric(a *Attempt) {
	source := a.service.program.GetMetric()
	port, ok := h.portAddresses()[source.GetPort()]
	path := checkText(source.GetPath())
	if source == nil || !ok || roost.CheckMetricName(source.GetName()) != nil || !strings.HasPrefix(path, "/") {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	a.service.metric = cancel
	reader := &probe.MetricReader{Target: port, Path: path, Name: source.GetName()}
	every := min(max(time.Duration(source.GetEveryNs()), minMetricEvery), maxMetricEvery)
	suspension := &h.ownerSuspension
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if a.isStill.Load() || suspension.reason() != "" {
				continue
			}
			limited, end := context.WithTimeout(ctx, min(metricTimeout, every))
			value, err := reader.Read(limited)
			end()
			n := metricRead{id: a.id, value: value}
			if err != nil {
				n.problem = err.Error()[:min(len(err.Error()), maxProblem)]
			}
			if ctx.Err() == nil {
				h.queue.Put(n)
			}
		}
	}()
}

// onMetricRead passes on the value of the metric of an attempt.
func (h serviceRunner) onMetricRead(n metricRead) {
	if !h.hasOpenAttempt(n.id) {
		return
	}
	h.machine.host.Post(MetricEvent{Claim: h.id, ID: n.id, Metric: &wire.TaskMetric{
		Attempt: wire.FromAttempt(n.id), Value: n.value, Problem: strings.ToValidUTF8(n.problem, "")}})
}

// metricRead is what was read of the metric of an attempt.
type metricRead struct {
	id      roost.AttemptID
	value   float64
	problem string
}
