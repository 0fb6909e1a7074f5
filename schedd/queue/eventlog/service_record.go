package eventlog

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// ServiceRecord is what is known of a task of a service beyond its state. Times are unix
// nanoseconds.
type ServiceRecord struct {
	State      roost.ServiceState // of the live attempt
	Since      int64              // when it came into that state
	ReadySince int64              // since when the live attempt is ready without a break; 0: it is not
	Check      string             // the check that said so last; empty for none
	Detail     string             // what that said
	// the last attempt that was ended for a check, until a later one is ready; 0: none
	RestartOf roost.AttemptNumber
}

func (s *ServiceRecord) append(b []byte) []byte {
	b = appendNumber(b, 1, uint64(s.State))
	b = appendNumber(b, 2, uint64(s.Since))
	b = appendNumber(b, 3, uint64(s.ReadySince))
	b = appendText(b, 4, s.Check)
	b = appendText(b, 5, s.Detail)
	return appendNumber(b, 6, uint64(s.RestartOf))
}

func (s *ServiceRecord) decode(b []byte) error {
	return eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			if s.State = roost.ServiceState(f.value); f.value > uint64(roost.ServiceLost) {
				return fmt.Errorf("%v", s.State)
			}
		case 2:
			s.Since = int64(f.value)
		case 3:
			s.ReadySince = int64(f.value)
		case 4:
			s.Check = string(f.bytes)
		case 5:
			s.Detail = string(f.bytes)
		case 6:
			s.RestartOf = roost.AttemptNumber(f.value)
		}
		return nil
	})
}
