package eventlog

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/autoscale"
)

// ScaleRecord is how the number of tasks of a service has followed its load.
type ScaleRecord struct {
	Changes []autoscale.Change // that may still bound another one, and the last one, oldest first
	Reason  string             // of the last
}

func (s *ScaleRecord) append(b []byte) []byte {
	for _, c := range s.Changes {
		b = appendMessage(b, 1, func(b []byte) []byte {
			return appendNumber(appendNumber(appendNumber(b, 1, uint64(c.At)), 2, uint64(c.From)), 3, uint64(c.To))
		})
	}
	return appendText(b, 2, s.Reason)
}

func (s *ScaleRecord) decode(b []byte) error {
	return eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			var c autoscale.Change
			err := eachField(f.bytes, func(f encodedField) error {
				switch f.number {
				case 1:
					c.At = int64(f.value)
				case 2:
					c.From = int(min(f.value, roost.MaxTasks+1))
				case 3:
					c.To = int(min(f.value, roost.MaxTasks+1))
				}
				return nil
			})
			if err == nil && max(c.From, c.To) > roost.MaxTasks {
				err = fmt.Errorf("a change to more tasks than a job may have")
			}
			s.Changes = append(s.Changes, c)
			return err
		case 2:
			s.Reason = string(f.bytes)
		}
		return nil
	})
}
