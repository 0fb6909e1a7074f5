package flow

import (
	"encoding/binary"
	"errors"
)

// The numbers of events on disk. They are never used for anything else.
const (
	codeBegun = iota + 1
	codeEnded
	codeStopped
	codeProvisionerReady
	codeHalted
	codeLimits
	codeRemoved
	codeRetried
)

// AppendEvent adds an event's form on disk to b. What TasksMoved says is not stored: the
// owner counts again after a restart.
func AppendEvent(b []byte, e FlowEvent) []byte {
	number := func(list ...int) {
		for _, n := range list {
			b = binary.AppendVarint(b, int64(n))
		}
	}
	switch e := e.(type) {
	case PartBegun:
		number(codeBegun, int(e.Node), e.Attempt, int(e.Part), int(e.Job))
	case PartEnded:
		number(codeEnded, int(e.Node), e.Attempt, int(e.Part), e.Code, len(e.Reason))
		b = append(b, e.Reason...)
	case PartStopped:
		number(codeStopped, int(e.Node))
	case ProvisionerReady:
		number(codeProvisionerReady)
	case FlowHalted:
		number(codeHalted, boolInt(e.On))
	case LimitsChanged:
		l := e.Limits
		number(codeLimits, l.Jobs, l.IdleTasks, l.Pre, l.Post, boolInt(l.Categories != nil), len(l.Categories))
		number(l.Categories...)
	case FlowRemoved:
		number(codeRemoved)
	case FlowRetried:
		number(codeRetried)
	}
	return b
}

// errEvent says that bytes are no event of a flow, or one of a newer release.
var errEvent = errors.New("flow: this is no event of a flow")

// DecodeEvents reads events that AppendEvent wrote one after the other.
func DecodeEvents(b []byte) (list []FlowEvent, err error) {
	s := &snapshotReader{from: b, nodes: 1 << 31}
	for len(s.from) > 0 && !s.failed {
		list = append(list, s.event())
	}
	if s.failed {
		return nil, errEvent
	}
	return list, nil
}

// event reads one event.
func (s *snapshotReader) event() FlowEvent {
	switch s.integer(codeRetried) {
	case codeBegun:
		return PartBegun{s.node(), s.integer(1 << 16), NodePart(s.integer(int(PostPart))), uint64(s.integer(maxJob))}
	case codeEnded:
		e := PartEnded{Node: s.node(), Attempt: s.integer(1 << 16), Part: NodePart(s.integer(int(PostPart))),
			Code: s.signed()}
		size := s.integer(len(s.from))
		if size > len(s.from) {
			s.failed = true
			return e
		}
		e.Reason, s.from = string(s.from[:size]), s.from[size:]
		return e
	case codeStopped:
		return PartStopped{s.node()}
	case codeProvisionerReady:
		return ProvisionerReady{}
	case codeHalted:
		return FlowHalted{s.integer(1) == 1}
	case codeLimits:
		l := Limits{Jobs: s.integer(maxInteger), IdleTasks: s.integer(maxInteger), Pre: s.integer(maxInteger),
			Post: s.integer(maxInteger)}
		if s.integer(1) == 1 {
			l.Categories = []int{}
		}
		for range s.integer(1 << 16) {
			l.Categories = append(l.Categories, s.signed())
		}
		return LimitsChanged{l}
	case codeRemoved:
		return FlowRemoved{}
	case codeRetried:
		return FlowRetried{}
	}
	s.failed = true
	return nil
}

// maxJob bounds the number of a job.
const maxJob = 1<<62 - 1
