package lublin

import "math"

// A day in spans of half an hour.
const (
	spansPerDay = 48
	spanLength  = 1800 // seconds
)

// dayStart is the span with which the day begins by which arrivals are counted: in the
// hours before fewest jobs come.
const dayStart = 11

// arrivalWeights say of each span of a day how fast time passes for the arrivals of a
// kind: 1 on the mean, more in rush hours.
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

// arrivalStream is the jobs of one kind as they come.
type arrivalStream struct {
	*jobType
	nextArrival float64 // seconds since the first midnight: when the next one comes
	weights     [spansPerDay]float64
}

func newStream(k *jobType, s *randomSource) *arrivalStream {
	st := &arrivalStream{jobType: k, weights: k.arrivalWeights()}
	st.drawNext(s)
	return st
}

// drawNext draws when the next job comes: after so many seconds of a clock that goes as
// fast as jobs come at that hour.
//
// The authors' program has each gap begin with a whole span and puts off what is left of
// it; on the mean that is the same.
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
