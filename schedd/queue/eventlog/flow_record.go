package eventlog

import (
	"maps"
	"slices"

	"github.com/roost-batch/roost/schedd/flow"
	"github.com/roost-batch/roost/schedd/flow/graph"
	"github.com/roost-batch/roost/schedd/flow/jobstate"
)

// FlowRecord is how far a flow has come. Nodes are known by their numbers in its plan.
type FlowRecord struct {
	Run      []byte            // as flow.Run.Snapshot has it
	Jobs     map[uint32]uint64 // that run a part of a node, by node
	Failures []FlowFailure     // the first nodes that failed in this run
	Jobstate *jobstate.State   // nil: there is no jobstate log
}

// FlowFailure is why a node failed.
type FlowFailure struct {
	Node   uint32
	Job    uint64 // of the part that failed; 0: it had none
	Reason string
}

func (r *FlowRecord) append(b []byte) []byte {
	b = appendText(b, 1, string(r.Run))
	for _, node := range slices.Sorted(maps.Keys(r.Jobs)) {
		b = appendMessage(b, 2, func(b []byte) []byte {
			return appendNumber(appendNumber(b, 1, uint64(node)), 2, r.Jobs[node])
		})
	}
	for _, f := range r.Failures {
		b = appendMessage(b, 3, func(b []byte) []byte {
			return appendText(appendNumber(appendNumber(b, 1, uint64(f.Node)), 2, f.Job), 3, f.Reason)
		})
	}
	if r.Jobstate != nil {
		b = appendMessage(b, 4, func(b []byte) []byte { return appendJobstate(b, r.Jobstate) })
	}
	return b
}

// appendJobstate writes what the jobstate log of a flow remembers.
func appendJobstate(b []byte, s *jobstate.State) []byte {
	b = appendNumber(appendNumber(b, 1, uint64(s.Run)), 2, uint64(s.Sequence))
	b = appendBool(b, 3, s.Ended)
	for _, node := range slices.Sorted(maps.Keys(s.Attempts)) {
		a := s.Attempts[node]
		b = appendMessage(b, 4, func(b []byte) []byte {
			return appendNumber(appendNumber(appendNumber(b, 1, uint64(node)), 2, uint64(a.Sequence)), 3, a.Job)
		})
	}
	for _, line := range s.Lines {
		b = appendText(b, 5, line)
	}
	return b
}

// decodeJobstate reads what appendJobstate wrote.
func decodeJobstate(b []byte) (*jobstate.State, error) {
	s := &jobstate.State{Attempts: map[graph.NodeID]jobstate.Attempt{}}
	return s, eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			s.Run = int(f.value)
		case 2:
			s.Sequence = int(f.value)
		case 3:
			s.Ended = f.value != 0
		case 4:
			var node graph.NodeID
			var a jobstate.Attempt
			err := eachField(f.bytes, func(f encodedField) error {
				switch f.number {
				case 1:
					node = graph.NodeID(f.value)
				case 2:
					a.Sequence = uint32(f.value)
				case 3:
					a.Job = f.value
				}
				return nil
			})
			s.Attempts[node] = a
			return err
		case 5:
			s.Lines = append(s.Lines, string(f.bytes))
		}
		return nil
	})
}

func (r *FlowRecord) decode(b []byte) error {
	r.Jobs = map[uint32]uint64{}
	return eachField(b, func(f encodedField) error {
		if f.number == 1 {
			r.Run = append([]byte(nil), f.bytes...)
			return nil
		}
		if f.number == 4 {
			s, err := decodeJobstate(f.bytes)
			r.Jobstate = s
			return err
		}
		var one FlowFailure
		err := eachField(f.bytes, func(f encodedField) error {
			switch f.number {
			case 1:
				one.Node = uint32(f.value)
			case 2:
				one.Job = f.value
			case 3:
				one.Reason = string(f.bytes)
			}
			return nil
		})
		switch f.number {
		case 2:
			r.Jobs[one.Node] = one.Job
		case 3:
			r.Failures = append(r.Failures, one)
		}
		return err
	})
}

// appendFlow adds the events of a flow in their form on disk.
func (e *JobEvent) appendFlow(b []byte) []byte {
	for _, step := range e.FlowEvents {
		b = flow.AppendEvent(b, step)
	}
	return b
}

// decodeFlow reads what appendFlow wrote.
func (e *JobEvent) decodeFlow(b []byte) (err error) {
	e.FlowEvents, err = flow.DecodeEvents(b)
	return err
}
