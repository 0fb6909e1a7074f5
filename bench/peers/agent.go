package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// measureSpec is an order for an agent to measure something.
type measureSpec struct {
	Measure        string    `json:"measure"`
	Count          int       `json:"count"`
	Sizes          workSizes `json:"sizes"`
	TimeoutSeconds float64   `json:"seconds"` // time limit
}

// measureResult is the result of a measurement: the values of each figure, in seconds,
// bytes, or per second.
type measureResult struct {
	Values map[string][]float64 `json:"values,omitempty"`
	Note   string               `json:"note,omitempty"`  // a remark on the values
	Error  string               `json:"error,omitempty"` // why there are no values
}

// serveAgent is the main function of an agent. It starts its system, reports that, and
// executes one order after the other until there are no more.
func serveAgent(args []string) int {
	var p namespaceConfig
	if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	orders := make(chan measureSpec)
	go func() { // the end of the orders ends everything in progress: the coordinator has ended
		defer cancel()
		for in := json.NewDecoder(os.Stdin); ; {
			var o measureSpec
			if err := in.Decode(&o); err != nil {
				if err != io.EOF {
					fmt.Fprintln(os.Stderr, "peers: orders:", err)
				}
				return
			}
			select {
			case orders <- o:
			case <-ctx.Done():
				return
			}
		}
	}()
	out := json.NewEncoder(os.Stdout)
	a, err := startAgent(ctx, p)
	if err != nil {
		out.Encode(measureResult{Error: err.Error()})
		return 1
	}
	defer a.batchSystem.stopSystem()
	out.Encode(measureResult{Note: a.version(ctx)})
	for {
		select {
		case o := <-orders:
			if err := out.Encode(a.runMeasure(ctx, o)); err != nil {
				return 1
			}
		case <-ctx.Done():
			return 0
		}
	}
}

// systemAgent measures one system from within its namespaces.
type systemAgent struct {
	namespaceConfig
	batchSystem
	uid int // of the user of commands and jobs
}

func startAgent(ctx context.Context, p namespaceConfig) (*systemAgent, error) {
	a := &systemAgent{namespaceConfig: p}
	if p.Root != "" {
		a.uid = benchUser
	}
	if err := a.prepareDirectory(); err != nil {
		return nil, err
	}
	switch p.System {
	case "roost":
		a.batchSystem = &roostSystem{systemAgent: a}
	case "htcondor":
		a.batchSystem = &htcondorSystem{systemAgent: a}
	case "slurm":
		a.batchSystem = &slurmSystem{systemAgent: a}
	case "gridengine":
		a.batchSystem = &gridEngineSystem{systemAgent: a}
	default:
		return nil, fmt.Errorf("no system is called %q", p.System)
	}
	ctx, cancel := context.WithTimeout(ctx, p.startLimit())
	defer cancel()
	if err := a.batchSystem.startSystem(ctx); err != nil {
		a.batchSystem.stopSystem()
		return nil, fmt.Errorf("start: %w", err)
	}
	return a, nil
}

// startLimit returns how long a system may take to start. Systems in which each machine
// is configured take longer with many.
func (p namespaceConfig) startLimit() time.Duration {
	return 2*time.Minute + time.Duration(p.Cell)*50*time.Millisecond
}

// runMeasure executes one order.
func (a *systemAgent) runMeasure(ctx context.Context, o measureSpec) measureResult {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(o.TimeoutSeconds*float64(time.Second)))
	defer cancel()
	ans := measureResult{Values: map[string][]float64{}}
	m, ok := findMeasure(o.Measure)
	if !ok {
		return measureResult{Error: fmt.Sprintf("no measure is called %q", o.Measure)}
	}
	err := m.run(a, ctx, o, &ans)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("not done after %.0f s: %w", o.TimeoutSeconds, err)
		}
		ans.Error = err.Error()
	}
	return ans
}
