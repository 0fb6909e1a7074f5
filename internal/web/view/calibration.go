package view

import (
	"context"

	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// Calibration is how far off the estimates of starts were.
type Calibration struct {
	Version   int               `json:"v"`
	Estimates []CalibrationLine `json:"estimates"`
	Silent    []string          `json:"silent_schedds,omitempty"`
	Schedds   int               `json:"schedds"` // whose starts are counted
}

// CalibrationLine is the starts whose estimates had one basis.
type CalibrationLine struct {
	Certainty string  `json:"certainty"` // as of roost why
	Starts    uint64  `json:"starts"`
	Late      uint64  `json:"late"` // of them those that came later than estimated
	P50       float64 `json:"p50_error_seconds"`
	P90       float64 `json:"p90_error_seconds"`
	// starts by their error: at most 1 s, 2 s, 4 s and so on
	Classes []uint64 `json:"classes"`
}

// ShowCalibration shows how far off estimates were, since the schedds were started.
func ShowCalibration(c *route.Call) (any, error) {
	d := Calibration{Version: document.Version, Estimates: []CalibrationLine{}}
	err := ask(c, func(ctx context.Context, s wire.ScheddClient) error {
		h, err := s.Health(ctx, &wire.HealthRequest{Waiting: true, PoolWaits: true})
		if err != nil {
			return err
		}
		all := h.GetPoolWaits().GetStartErrors()
		if h.GetPoolWaits() == nil { // of a schedd of an older version
			all = h.GetStartErrors()
		}
		for _, e := range all {
			d.Estimates = append(d.Estimates, calibrationLineOf(e))
		}
		d.Silent, d.Schedds = fewProblems(h.GetSilentSchedds()), max(int(h.GetPoolSchedds()), 1)
		return nil
	})
	return d, err
}

func calibrationLineOf(e *wire.StartErrors) CalibrationLine {
	l := CalibrationLine{Certainty: e.GetCertainty(), Late: e.GetLate(), Classes: append([]uint64{}, e.GetStarts()...)}
	for _, n := range l.Classes {
		l.Starts += n
	}
	l.P50, l.P90 = errorQuantile(l.Classes, l.Starts, .5), errorQuantile(l.Classes, l.Starts, .9)
	return l
}

// errorQuantile estimates which error a part of the starts does not exceed, in seconds.
// Within a class they are taken to be spread evenly.
func errorQuantile(classes []uint64, starts uint64, part float64) float64 {
	left, low, high := part*float64(starts), 0.0, 1.0
	for _, n := range classes {
		if left <= float64(n) && n > 0 {
			return low + (high-low)*left/float64(n)
		}
		left, low, high = left-float64(n), high, 2*high
	}
	return low
}
