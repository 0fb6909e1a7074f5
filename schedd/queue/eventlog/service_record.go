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
	// the last attempt that was ended for a check, or because its machine is drained,
	// until a later one is ready; 0: none
	RestartOf roost.AttemptNumber
	// the last attempt that was ended for its live check; 0: none
	FailedCheckOf roost.AttemptNumber
	Restarts      int     // of the task, after ends of its own and failed live checks
	EarlyEnds     int     // such ends in a row that came early, see package restart
	Recent        []int64 // restarts on the present machine that still count
	// since when another attempt may begin; 0: since ever
	NotBefore  int64
	Waits      bool // it waits for that
	ReuseClaim bool // the next attempt is to run on the claim of the last
	Updated    TaskRevision
}

func (s *ServiceRecord) append(b []byte) []byte {
	b = appendNumber(b, 1, uint64(s.State))
	b = appendNumber(b, 2, uint64(s.Since))
	b = appendNumber(b, 3, uint64(s.ReadySince))
	b = appendText(b, 4, s.Check)
	b = appendText(b, 5, s.Detail)
	b = appendNumber(b, 6, uint64(s.RestartOf))
	b = appendNumber(b, 7, uint64(s.Restarts))
	b = appendNumber(b, 8, uint64(s.EarlyEnds))
	for _, at := range s.Recent {
		b = appendNumber(b, 9, uint64(at))
	}
	b = appendNumber(b, 10, uint64(s.NotBefore))
	b = appendBool(appendBool(b, 11, s.Waits), 12, s.ReuseClaim)
	b = appendNumber(b, 13, uint64(s.FailedCheckOf))
	return appendMessage(b, 20, s.Updated.append)
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
		case 7:
			s.Restarts = int(f.value)
		case 8:
			s.EarlyEnds = int(f.value)
		case 9:
			s.Recent = append(s.Recent, int64(f.value))
		case 10:
			s.NotBefore = int64(f.value)
		case 11:
			s.Waits = f.value != 0
		case 12:
			s.ReuseClaim = f.value != 0
		case 13:
			s.FailedCheckOf = roost.AttemptNumber(f.value)
		case 20:
			return s.Updated.decode(f.bytes)
		}
		return nil
	})
}
