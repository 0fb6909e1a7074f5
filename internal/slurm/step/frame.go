package step

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// FrameKind says what a frame carries.
type FrameKind byte

const (
	FrameHello    FrameKind = 'H' // from an agent: it is there
	FrameBegin    FrameKind = 'B' // to an agent: a TaskGroup as JSON
	FrameInput    FrameKind = 'I' // to tasks: standard input
	FrameInputEnd FrameKind = 'E' // to tasks: its end
	FrameSignal   FrameKind = 'S' // to tasks: the number of a signal, one byte
	FrameRanks    FrameKind = 'P' // both ways: a message of package internal/pmi
	FrameOutput   FrameKind = 'O' // from a task: standard output
	FrameError    FrameKind = 'R' // from a task: standard error
	FrameExit     FrameKind = 'X' // from a task: a TaskEnd as JSON
	// Of the socket of a step.
	FrameCancel FrameKind = 'C' // end the step
	FrameAttach FrameKind = 'A' // send what tasks write from now on, and take input
	FrameSize   FrameKind = 'T' // how many tasks the step has is in Task: the first answer to AttachSize
	FrameLayout FrameKind = 'L' // say where the tasks are; the answer is a text
	FrameDone   FrameKind = 'D' // the answer: it is done, or the step has ended with this status, one byte
	FrameRefuse FrameKind = 'N' // the answer: why not
)

// AttachSize is the data of a FrameAttach that asks for the size of the step first. A
// step of an earlier release does not answer it.
const AttachSize = 1

// AllTasks is the task of a frame that is for all tasks of the agent.
const AllTasks = 1<<32 - 1

// MaxFrame bounds what a frame carries, in bytes. The beginning of a step carries the
// whole environment.
const MaxFrame = 8 << 20

// Frame is one message between srun and an agent.
type Frame struct {
	Kind FrameKind
	Task uint32 // number in the step, or AllTasks
	Data []byte
}

const frameHeader = 9

// Append appends the encoded frame: its kind, its task and the length of its data, then
// the data. Numbers are little-endian.
func (f Frame) Append(b []byte) []byte {
	b = append(b, byte(f.Kind))
	b = binary.LittleEndian.AppendUint32(b, f.Task)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f.Data)))
	return append(b, f.Data...)
}

// errFrame is for what is no frame.
var errFrame = errors.New("that is no message of a step")

// ReadFrame reads a frame. It returns io.EOF where the stream ends before one.
func ReadFrame(in io.Reader) (f Frame, err error) {
	var header [frameHeader]byte
	if _, err := io.ReadFull(in, header[:]); err != nil {
		return f, err
	}
	f.Kind, f.Task = FrameKind(header[0]), binary.LittleEndian.Uint32(header[1:])
	n := binary.LittleEndian.Uint32(header[5:])
	if n > MaxFrame {
		return f, fmt.Errorf("%w: %d bytes", errFrame, n)
	}
	f.Data = make([]byte, n)
	_, err = io.ReadFull(in, f.Data)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return f, err
}

// FrameReader puts frames together from the pieces in which they come. The zero value is
// ready for use.
type FrameReader struct{ rest []byte }

// Add returns the frames that are whole now. It returns an error where something else
// came; nothing more is to be added then.
func (r *FrameReader) Add(data []byte) (all []Frame, err error) {
	r.rest = append(r.rest, data...)
	for len(r.rest) >= frameHeader {
		n := binary.LittleEndian.Uint32(r.rest[5:])
		if n > MaxFrame {
			return all, fmt.Errorf("%w: %d bytes", errFrame, n)
		}
		end := frameHeader + int(n)
		if len(r.rest) < end {
			break
		}
		all = append(all, Frame{FrameKind(r.rest[0]), binary.LittleEndian.Uint32(r.rest[1:]),
			append([]byte(nil), r.rest[frameHeader:end]...)})
		r.rest = r.rest[end:]
	}
	if len(r.rest) == 0 {
		r.rest = nil
	}
	return all, nil
}
