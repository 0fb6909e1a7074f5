package pmi

import "encoding/binary"

// MessageKind is what a message between a node and the collector of its gang means.
type MessageKind uint8

// The messages. Those of a node come first.
const (
	// Progress: how far the ranks of a node are. Data has one byte for each.
	Progress MessageKind = iota + 1
	// Barrier: all ranks of a node are in barrier Epoch. Data is their keys since the
	// last one.
	Barrier
	// Ended: all ranks of a node have ended well.
	Ended
	// Failed: rank Rank has ended the gang with Code. Text says how.
	Failed
	// Leaving: the ranks of a node are being ended from outside. What fails now fails for
	// that.
	Leaving
	// Release: all nodes are in barrier Epoch. Data is the keys of all.
	Release
	// Finish: all ranks of all nodes have ended well.
	Finish
	// Stop: the gang ends with Code. Text says why.
	Stop
	kindEnd
)

// Message is what a node and the collector of its gang tell each other.
type Message struct {
	Kind  MessageKind
	More  bool   // the rest of Data follows in another message
	Epoch uint32 // number of the barrier, from 1
	Rank  uint32
	Code  int32
	Text  string
	Data  []byte
}

// ExitStatus is the exit status of a task whose gang has ended with this message. It has
// the lowest eight bits of Code, as exit(3) has them. A gang that was stopped has failed:
// its status is never 0.
func (m *Message) ExitStatus() int {
	status := int(m.Code) & 0xff
	if status == 0 && (m.Kind == Stop || m.Kind == Failed) {
		return 1
	}
	return status
}

// The bounds of a message in bytes.
const (
	maxMessageText = 4 << 10
	// MaxMessageData bounds the data of one message: Split parts what is longer.
	MaxMessageData = 128 << 10
	// MaxMessage bounds an encoded message.
	MaxMessage = MaxMessageData + maxMessageText + 64
)

// Append encodes the message behind other bytes.
func (m *Message) Append(b []byte) []byte {
	more := byte(0)
	if m.More {
		more = 1
	}
	b = append(b, byte(m.Kind), more)
	b = binary.AppendUvarint(b, uint64(m.Epoch))
	b = binary.AppendUvarint(b, uint64(m.Rank))
	b = binary.AppendVarint(b, int64(m.Code))
	text := m.Text[:min(len(m.Text), maxMessageText)]
	b = binary.AppendUvarint(b, uint64(len(text)))
	b = append(b, text...)
	return append(b, m.Data...)
}

// DecodeMessage decodes a message; ok is false if the bytes are none.
func DecodeMessage(b []byte) (m Message, ok bool) {
	if len(b) < 2 || len(b) > MaxMessage || b[0] == 0 || b[0] >= byte(kindEnd) || b[1] > 1 {
		return m, false
	}
	m.Kind, m.More, b = MessageKind(b[0]), b[1] == 1, b[2:]
	for _, field := range [...]*uint32{&m.Epoch, &m.Rank} {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > 1<<32-1 {
			return m, false
		}
		*field, b = uint32(n), b[size:]
	}
	code, size := binary.Varint(b)
	if size <= 0 || code != int64(int32(code)) {
		return m, false
	}
	m.Code, b = int32(code), b[size:]
	n, size := binary.Uvarint(b)
	if size <= 0 || n > maxMessageText || n > uint64(len(b)-size) {
		return m, false
	}
	m.Text, m.Data = string(b[size:size+int(n)]), b[size+int(n):]
	return m, len(m.Data) <= MaxMessageData
}

// Split parts a message into such whose data is short enough to be sent. The parts share
// the message's data.
func (m Message) Split() (parts []Message) {
	for len(m.Data) > MaxMessageData {
		part := m
		part.More, part.Data = true, m.Data[:MaxMessageData]
		parts, m.Data = append(parts, part), m.Data[MaxMessageData:]
	}
	return append(parts, m)
}

// MessageJoiner joins the parts that Split made.
type MessageJoiner struct{ data []byte }

// Join takes in one part, and returns the message when it is the last of it. tooLong is
// true when the data of all parts is more than max bytes.
func (j *MessageJoiner) Join(m Message, limit int) (whole Message, complete, tooLong bool) {
	if len(j.data)+len(m.Data) > limit {
		j.data = nil
		return m, false, true
	}
	if m.More {
		j.data = append(j.data, m.Data...)
		return m, false, false
	}
	if j.data != nil {
		m.Data, j.data = append(j.data, m.Data...), nil
	}
	return m, true, false
}
