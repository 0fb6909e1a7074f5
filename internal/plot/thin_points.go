package plot

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"
)

// thinColumns is the number of columns that a series with too many points is reduced to.
const thinColumns = 1200

// thinPoints reduces a series to the points that a chart can show. It retains the first,
// lowest, highest and last point of each column, in order. On a logarithmic scale the
// columns are logarithmic, too; otherwise all small values would be in the first. A line
// that leads back is not reduced.
func thinPoints(points []DataPoint, powers bool) plotter.XYs {
	back := func(a, b DataPoint) int { return cmp.Compare(a.X, b.X) }
	if len(points) <= 4*thinColumns || !slices.IsSortedFunc(points, back) {
		return allPoints(points)
	}
	place := func(x float64) float64 {
		if powers {
			return math.Log(x)
		}
		return x
	}
	first := place(points[0].X)
	wide := (place(points[len(points)-1].X) - first) / thinColumns
	if wide <= 0 {
		return allPoints(points)
	}
	in := func(i int) int { return int((place(points[i].X) - first) / wide) }
	var out plotter.XYs
	for from := 0; from < len(points); {
		column := in(from)
		low, high, to := from, from, from
		for ; to < len(points) && in(to) == column; to++ {
			if points[to].Y < points[low].Y {
				low = to
			}
			if points[to].Y > points[high].Y {
				high = to
			}
		}
		chosen := []int{from, low, high, to - 1}
		slices.Sort(chosen)
		for _, i := range slices.Compact(chosen) {
			out = append(out, plotter.XY(points[i]))
		}
		from = to
	}
	return out
}

func allPoints(points []DataPoint) plotter.XYs {
	out := make(plotter.XYs, len(points))
	for i, p := range points {
		out[i] = plotter.XY(p)
	}
	return out
}

// CDF returns the distribution of values: for each value, the percentage that is not
// larger. It is drawn as a [Step].
func CDF(values []float64) []DataPoint {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	var points []DataPoint
	for i, v := range sorted {
		at := DataPoint{v, 100 * float64(i+1) / float64(len(sorted))}
		if n := len(points); n > 0 && points[n-1].X == v {
			points[n-1] = at
			continue
		}
		if i == 0 {
			points = append(points, DataPoint{v, 0})
		}
		points = append(points, at)
	}
	return points
}
