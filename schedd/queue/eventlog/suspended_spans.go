package eventlog

// maxSuspendedSpans bounds the spans of one attempt that are kept apart.
const maxSuspendedSpans = 100

// SuspendedSpan is a time during which an attempt was suspended, in unix nanoseconds of
// the schedd's clock.
type SuspendedSpan struct {
	From, To int64 // To is 0 while it lasts
}

// SuspendedSpans is when a live attempt was suspended, oldest first. Of more than
// maxSuspendedSpans the last grows instead: it begins earlier by what came after it.
type SuspendedSpans struct{ Spans []SuspendedSpan }

// Begin notes that the attempt is suspended since then.
func (s *SuspendedSpans) Begin(at int64) {
	if n := len(s.Spans); n == 0 || s.Spans[n-1].To != 0 {
		s.Spans = append(s.Spans, SuspendedSpan{From: at})
	}
}

// End notes that it is suspended no longer since then.
func (s *SuspendedSpans) End(at int64) {
	n := len(s.Spans)
	if n == 0 || s.Spans[n-1].To != 0 {
		return
	}
	s.Spans[n-1].To = max(at, s.Spans[n-1].From)
	if n > maxSuspendedSpans {
		last := s.Spans[n-1]
		s.Spans = s.Spans[:n-1]
		s.Spans[n-2].From = max(s.Spans[n-2].From-(last.To-last.From), s.Spans[n-3].To)
	}
}

// Clone returns a copy that shares nothing; nil for nil.
func (s *SuspendedSpans) Clone() []SuspendedSpan {
	if s == nil {
		return nil
	}
	return append([]SuspendedSpan(nil), s.Spans...)
}

func (s *SuspendedSpans) append(b []byte) []byte {
	for _, span := range s.Spans {
		b = appendMessage(b, 1, func(b []byte) []byte {
			return appendNumber(appendNumber(b, 1, uint64(span.From)), 2, uint64(span.To))
		})
	}
	return b
}

func (s *SuspendedSpans) decode(b []byte) error {
	return eachField(b, func(f encodedField) error {
		if f.number != 1 {
			return nil
		}
		var span SuspendedSpan
		err := eachField(f.bytes, func(f encodedField) error {
			switch f.number {
			case 1:
				span.From = int64(f.value)
			case 2:
				span.To = int64(f.value)
			}
			return nil
		})
		s.Spans = append(s.Spans, span)
		return err
	})
}
