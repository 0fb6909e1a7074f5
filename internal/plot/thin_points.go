package plot

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"
)

// thinColumns is into how many a series is cut that has too many points: no picture shows
// more.
const thinColumns = 1200

// thinPoints is a series with no more points than a picture can show: of each column's
// points the first, the lowest, the highest and the last in their order. On a scale of
// powers of ten columns are as wide as they are there: otherwise all that is small would
// lie in the first. What leads back is left as it is.
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
		keep := []int{from, low, high, to - 1}
		slices.Sort(keep)
		for _, i := range slices.Compact(keep) {
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

// CDF is how values are spread: at each value, how many per cent are no larger. It is
// drawn as a [Step].
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
