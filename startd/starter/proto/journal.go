package proto

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendRecord appends the message to b as a record of the journal.
func AppendRecord(b []byte, m *StarterMessage) []byte {
	start := len(b)
	w := bodyWriter{append(b, 0, 0, 0, 0, 0, 0, 0, 0)}
	w.body(m)
	body := w.buffer[start+8:]
	binary.LittleEndian.PutUint32(w.buffer[start:], uint32(len(body)))
	binary.LittleEndian.PutUint32(w.buffer[start+4:], crc32.Checksum(body, castagnoli))
	return w.buffer
}

// Replay reads a journal and returns the last state of its starter. It stops at the first
// record that is torn or invalid.
func Replay(journal []byte) StarterState {
	var s StarterState
	for len(journal) >= 8 {
		size, sum := binary.LittleEndian.Uint32(journal), binary.LittleEndian.Uint32(journal[4:])
		if uint64(size) > uint64(len(journal)-8) {
			break
		}
		body := journal[8 : 8+size]
		m, ok := DecodeBody(body)
		if crc32.Checksum(body, castagnoli) != sum || !ok {
			break
		}
		s.apply(&m)
		journal = journal[8+size:]
	}
	return s
}

// apply applies a record to the state.
func (s *StarterState) apply(m *StarterMessage) {
	switch m.Type {
	case TypeStarted:
		*s = StarterState{Phase: Running, Attempt: m.Attempt, PID: m.State.PID, Since: m.State.Since}
	case TypeExited:
		if s.Phase != Running || s.Attempt != m.Attempt {
			*s = StarterState{}
		}
		s.Phase, s.Attempt, s.Exit = Ended, m.Attempt, m.State.Exit
	case TypeDiscarded:
		if s.Attempt == m.Attempt {
			*s = StarterState{}
		}
	}
}
