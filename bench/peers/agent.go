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

// order is what an agent is to measure.
type order struct {
	Measure string  `json:"measure"`
	Count   int     `json:"count"`
	Sizes   sizes   `json:"sizes"`
	Seconds float64 `json:"seconds"` // it gives up after so many
}

// answer is what it has measured: the values of each figure, in seconds, bytes, or so many a second.
type answer struct {
	Values map[string][]float64 `json:"values,omitempty"`
	Note   string               `json:"note,omitempty"`  // what one should know about the values
	Error  string               `json:"error,omitempty"` // why there are none
}

// serveAgent is the agent's whole life: it starts its system, says so, and measures one order after the other until there are no more.
func serveAgent(args []string) int {
	var p place
	if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	orders := make(chan order)
	go func() { // the end of the orders ends whatever is under way: the coordinator has gone
		defer cancel()
		for in := json.NewDecoder(os.Stdin); ; {
			var o order
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
		out.Encode(answer{Error: err.Error()})
		return 1
	}
	defer a.system.end()
	out.Encode(answer{Note: a.version(ctx)})
	for {
		select {
		case o := <-orders:
			if err := out.Encode(a.obey(ctx, o)); err != nil {
				return 1
			}
		case <-ctx.Done():
			return 0
		}
	}
}

// agent measures one system from within its namespaces.
type agent struct {
	place
	system
	uid int // whose commands and jobs they are
}

func startAgent(ctx context.Context, p place) (*agent, error) {
	a := &agent{place: p}
	if p.Root != "" {
		a.uid = user
	}
	if err := a.prepare(); err != nil {
		return nil, err
	}
	switch p.System {
	case "roost":
		a.system = &roostSystem{agent: a}
	case "htcondor":
		a.system = &htcondor{agent: a}
	case "slurm":
		a.system = &slurm{agent: a}
	case "gridengine":
		a.system = &gridEngine{agent: a}
	default:
		return nil, fmt.Errorf("no system is called %q", p.System)
	}
	ctx, cancel := context.WithTimeout(ctx, p.startLimit())
	defer cancel()
	if err := a.system.begin(ctx); err != nil {
		a.system.end()
		return nil, fmt.Errorf("start: %w", err)
	}
	return a, nil
}

// startLimit is how long a system may take to start: those that have to be told of machines one by one take longer with many.
func (p place) startLimit() time.Duration {
	return 2*time.Minute + time.Duration(p.Cell)*50*time.Millisecond
}

// obey measures once.
func (a *agent) obey(ctx context.Context, o order) answer {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(o.Seconds*float64(time.Second)))
	defer cancel()
	ans := answer{Values: map[string][]float64{}}
	m, ok := measureOf(o.Measure)
	if !ok {
		return answer{Error: fmt.Sprintf("no measure is called %q", o.Measure)}
	}
	err := m.run(a, ctx, o, &ans)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("not done after %.0f s: %w", o.Seconds, err)
		}
		ans.Error = err.Error()
	}
	return ans
}
