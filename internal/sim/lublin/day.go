package lublin

import "math"

// A day in spans of half an hour.
const (
	spans      = 48
	spanLength = 1800 // seconds
)

// dayBegins is the span with which the day begins by which arrivals are counted: in the hours before fewest jobs come.
const dayBegins = 11

// weights say of each span of a day how fast time passes for the arrivals of a kind: 1 on the mean, more in rush hours.
func (k *kind) weights() (w [spans]float64) {
	sum := 0.
	for i := dayBegins; i < dayBegins+spans; i++ {
		part := k.day.part(float64(i)+0.5) - k.day.part(float64(i)-0.5)
		w[(i-1)%spans] = part
		sum += part
	}
	for i := range w {
		w[i] /= sum / spans
	}
	return w
}

// stream is the jobs of one kind as they come.
type stream struct {
	*kind
	at   float64 // seconds since the first midnight: when the next one comes
	pace [spans]float64
}

func newStream(k *kind, s *source) *stream {
	st := &stream{kind: k, pace: k.weights()}
	st.forward(s)
	return st
}

// forward draws when the next job comes: after so many seconds of a clock that goes as fast as jobs come at that hour.
//
// The authors' program has each gap begin with a whole span and puts off what is left of it; on the mean that is the same.
func (st *stream) forward(s *source) {
	left := math.Exp(st.gap.below(s, maxGap))
	for {
		span := int64(st.at / spanLength)
		pace := st.pace[span%spans]
		rest := float64((span+1)*spanLength) - st.at
		if rest*pace >= left {
			st.at += left / pace
			return
		}
		left -= float64(rest * pace)
		st.at = float64((span + 1) * spanLength)
	}
}
