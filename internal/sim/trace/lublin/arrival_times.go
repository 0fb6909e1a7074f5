package lublin

import "math"

// The spans of half an hour that a day is divided into.
const (
	spansPerDay = 48
	spanLength  = 1800 // seconds
)

// dayStart is the first span of the day by which arrivals are counted. The fewest jobs
// arrive in the hours before it.
const dayStart = 11

// arrivalWeights returns for each span of a day how fast time passes for the arrivals of
// a type. The mean is 1; rush hours have more.
func (k *jobType) arrivalWeights() (w [spansPerDay]float64) {
	sum := 0.
	for i := dayStart; i < dayStart+spansPerDay; i++ {
		part := k.arrivalsByHour.distributionBelow(float64(i)+0.5) - k.arrivalsByHour.distributionBelow(float64(i)-0.5)
		w[(i-1)%spansPerDay] = part
		sum += part
	}
	for i := range w {
		w[i] /= sum / spansPerDay
	}
	return w
}

// arrivalStream draws the arrivals of one job type.
type arrivalStream struct {
	*jobType
	nextArrival float64 // seconds from the first midnight to the next arrival
	weights     [spansPerDay]float64
}

func newStream(k *jobType, s *randomSource) *arrivalStream {
	st := &arrivalStream{jobType: k, weights: k.arrivalWeights()}
	st.drawNext(s)
	return st
}

// drawNext draws the time of the next arrival. It draws the gap on a clock that runs as
// fast as jobs arrive at that hour.
//
// In the authors' program each gap begins with a whole span, and the remainder carries
// over; the mean is the same.
func (st *arrivalStream) drawNext(s *randomSource) {
	left := math.Exp(st.rushGap.drawBelow(s, maxGap))
	for {
		span := int64(st.nextArrival / spanLength)
		pace := st.weights[span%spansPerDay]
		rest := float64((span+1)*spanLength) - st.nextArrival
		if rest*pace >= left {
			st.nextArrival += left / pace
			return
		}
		left -= float64(rest * pace)
		st.nextArrival = float64((span + 1) * spanLength)
	}
}
