package eventlog

import (
	"maps"
	"slices"

	"github.com/roost-batch/roost/schedd/flow"
)

// FlowRecord is how far a flow has come. Nodes are known by their numbers in its plan.
type FlowRecord struct {
	Run      []byte            // as flow.Run.Snapshot has it
	Jobs     map[uint32]uint64 // that run a part of a node, by node
	Failures []FlowFailure     // the first nodes that failed in this run
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
	return b
}

func (r *FlowRecord) decode(b []byte) error {
	r.Jobs = map[uint32]uint64{}
	return eachField(b, func(f encodedField) error {
		if f.number == 1 {
			r.Run = append([]byte(nil), f.bytes...)
			return nil
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
