package view

import (
	"math"
	"time"

	"github.com/roost-batch/roost/internal/web/chart"
	"github.com/roost-batch/roost/internal/wire"
)

// scaleCharts draws the number of tasks of a service, and what it was decided by.
func scaleCharts(a *wire.AutoscaleStatus) []chart.Chart {
	points := a.GetPoints()
	if len(points) < 2 {
		return nil
	}
	step := time.Duration(points[len(points)-1].GetAt()-points[0].GetAt()) / time.Duration(len(points)-1)
	count := chart.Chart{Title: "Tasks", Step: step, Bound: float64(a.GetMax()), Label: "max",
		Series: []chart.Series{{Name: "there were to be"}, {Name: "wanted by the load"}}}
	title := map[string]string{"metric": a.GetWhat() + ", in each task", "waiting": "Waiting tasks, for each task",
		"cpu": "Use of cores, in each task", "memory": "Use of memory, in each task"}[a.GetSource()]
	load := chart.Chart{Title: title, Step: step, Bound: a.GetTarget(), Label: "target",
		Series: []chart.Series{{Name: "on average"}}}
	for _, p := range points {
		at := time.Unix(0, p.GetAt())
		count.Times, load.Times = append(count.Times, at), append(load.Times, at)
		average := p.GetAverage()
		if p.GetMeasured() == 0 {
			average = math.NaN()
		}
		count.Series[0].Values = append(count.Series[0].Values, float64(p.GetCount()))
		count.Series[1].Values = append(count.Series[1].Values, float64(p.GetWanted()))
		load.Series[0].Values = append(load.Series[0].Values, average)
	}
	return []chart.Chart{count, load}
}
