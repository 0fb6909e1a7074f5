package userfiles

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/roost-batch/roost"
)

type opCode uint8

// The operations of an agent.
const (
	opExpand opCode = iota + 1
	opSnapshot
	opMore // the next page of the list before
	opStat
	opReadAt
	opOpen
	opRead
	opCreate
	opWrite
	opCommit
	opDrop // close the handle; an uncommitted file is removed. There is no reply
	opMkdir
	opRemove
	opMeasure
	opAppend
	opStage   // begin a set of files that get their names together
	opInstall // give them their names; opDrop removes them
)

// agentRequest is one request. The reply has the same ID. The caller chooses handles, so
// that it can drop one whose opening it no longer waits for.
type agentRequest struct {
	ID       uint64   `json:",omitempty"`
	Op       opCode   `json:",omitempty"`
	Base     string   `json:",omitempty"`
	Name     string   `json:",omitempty"`
	Patterns []string `json:",omitempty"`
	Handle   uint64   `json:",omitempty"`
	Offset   int64    `json:",omitempty"`
	Mode     uint32   `json:",omitempty"`
	Sync     bool     `json:",omitempty"`
	Bound    ListLimit
	Stage    uint64 `json:",omitempty"` // of a new file or directory: the set that it belongs to
	Holes    bool   `json:",omitempty"` // of a file that is read: holes are left out
}

type agentReply struct {
	ID      uint64          `json:",omitempty"`
	Error   string          `json:",omitempty"`
	Kind    roost.ErrorKind `json:",omitempty"`
	Entries []TransferEntry `json:",omitempty"`
	More    bool            `json:",omitempty"`
	Size    int64           `json:",omitempty"`
	Files   int             `json:",omitempty"`
}

// The daemon does not trust an agent that runs as a user, so every message has a bound.
const (
	maxHeader = 4 << 20
	pageSize  = 1000 // entries of one reply, unless their names are too long for it
)

// writeMessage writes one message. A message is two lengths of four bytes, little endian,
// then a header in JSON and data of those lengths.
func writeMessage(w io.Writer, header any, data []byte) error {
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	if len(text) > maxHeader {
		return fmt.Errorf("message of %d bytes: %w: the limit is %d", len(text), roost.Exhausted, maxHeader)
	}
	frame := make([]byte, 8, 8+len(text)+len(data))
	binary.LittleEndian.PutUint32(frame, uint32(len(text)))
	binary.LittleEndian.PutUint32(frame[4:], uint32(len(data)))
	frame = append(append(frame, text...), data...)
	_, err = w.Write(frame)
	return err
}

func readMessage(r io.Reader, header any) (data []byte, err error) {
	var lengths [8]byte
	if _, err := io.ReadFull(r, lengths[:]); err != nil {
		return nil, err
	}
	text, size := binary.LittleEndian.Uint32(lengths[:]), binary.LittleEndian.Uint32(lengths[4:])
	if text > maxHeader || size > ChunkSize {
		return nil, fmt.Errorf("message of %d and %d bytes: %w", text, size, roost.Invalid)
	}
	body := make([]byte, int(text)+int(size))
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body[:text], header); err != nil {
		return nil, err
	}
	return body[text:], nil
}
