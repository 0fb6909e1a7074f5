package appendlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
)

// Finding is one damage of a log.
type Finding struct {
	First, Last uint64 // damaged entries
	Reason      string
	Data        []byte // what is left of a single entry; nil: nothing

	// Nothing is lost: Data is the original entry, or the damage is not in an entry and
	// Data is nil.
	Corrected bool
}

// segmentScan reads a segment from its beginning to its end. It trusts nothing: after a
// damaged entry it continues with the next intact one.
type segmentScan struct {
	id     *ID
	b      []byte // the segment
	path   string
	at     int    // offset of the next entry
	number uint64 // of the next entry
	from   uint64 // entries below this are of no interest
	entry  func(number uint64, data []byte) error

	untilDamage bool // no entry after a damage is passed on

	findings []Finding
	torn     bool // bytes of an incomplete entry follow the last one
}

// scan reads the entries. All below acknowledged must be there. It returns an error of
// entry, or that the format is a later one.
func (s *segmentScan) scan(first, acknowledged uint64) error {
	s.number, s.at = first, headerSize
	problem, err := headerProblem(s.b, *s.id, first)
	if err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	if problem != "" {
		s.findings = append(s.findings, Finding{First: first, Last: first, Corrected: true,
			Reason: fmt.Sprintf("segment %s: %s", filepath.Base(s.path), problem)})
	}
	for {
		if err := s.intactEntries(); err != nil {
			return err
		}
		next, number := s.findEntry()
		if next < 0 {
			break
		}
		s.damagedEntries(next, number)
	}
	s.end(acknowledged)
	return nil
}

// intactEntries reads entries up to the first that is not intact.
func (s *segmentScan) intactEntries() error {
	for s.at < len(s.b) {
		number, data, plausible := entryAt(s.b[s.at:])
		if !plausible || number != s.number || storedChecksum(s.b[s.at:]) != entryChecksum(s.id, number, data) {
			return nil
		}
		if number >= s.from && !(s.untilDamage && len(s.findings) > 0) {
			if err := s.entry(number, data); err != nil {
				return err
			}
		}
		s.at, s.number = s.at+entrySize(len(data)), number+1
	}
	return nil
}

// searchWindow is how far findEntry looks beyond the first intact entry. A sector that is
// a copy of a later one has intact entries, too, and those between are behind it.
const searchWindow = 16 << 10

// findEntry finds the intact entry with the lowest number behind a damaged one; at is -1
// if there is none.
func (s *segmentScan) findEntry() (at int, number uint64) {
	at = -1
	end := len(s.b)
	for place := s.at; place+entryHead <= end; place += alignment {
		n, data, plausible := entryAt(s.b[place:])
		// each entry has a head: a number that is further ahead cannot be here
		if !plausible || n < s.number || n-s.number > uint64(place-s.at)/entryHead || at >= 0 && n >= number {
			continue
		}
		if storedChecksum(s.b[place:]) != entryChecksum(s.id, n, data) {
			continue
		}
		if at < 0 {
			end = min(end, place+searchWindow)
		}
		at, number = place, n
	}
	return at, number
}

// damagedEntries adds the entries from the present one to before number. They are in the
// bytes up to end.
func (s *segmentScan) damagedEntries(end int, number uint64) {
	for s.number < number && s.damagedEntry(end) {
	}
	switch lost := number - s.number; {
	case lost == 1 && end-s.at > entryHead: // its length is unknown
		s.addEntry(s.b[s.at:end], s.b[s.at+entryHead:end])
	case lost > 0:
		s.addFinding(Finding{First: s.number, Last: number - 1, Reason: "their checksums are wrong"})
	}
	s.at, s.number = end, number
}

// damagedEntry adds the present entry if its extent is known and ends at end or before.
func (s *segmentScan) damagedEntry(end int) bool {
	if s.at >= end {
		return false
	}
	b := s.b[s.at:end]
	data, found := s.dataDespiteHead(b)
	if found {
		s.addFinding(Finding{First: s.number, Last: s.number, Reason: "one bit of it has flipped",
			Data: bytes.Clone(data), Corrected: true})
	} else {
		n, extent, plausible := entryAt(b)
		if !plausible || n != s.number {
			return false
		}
		data = extent
		s.addEntry(b, data)
	}
	s.at, s.number = s.at+entrySize(len(data)), s.number+1
	return true
}

// dataDespiteHead finds the data of an entry with a flipped bit in its length or its
// number.
func (s *segmentScan) dataDespiteHead(b []byte) (data []byte, found bool) {
	if len(b) < entryHead {
		return nil, false
	}
	head := bytes.Clone(b[:4])
	for bit := range 8*len(head) + 1 {
		if bit > 0 {
			head[(bit-1)/8] ^= 1 << ((bit - 1) % 8)
		}
		n := uint64(binary.BigEndian.Uint32(head))
		if bit > 0 {
			head[(bit-1)/8] ^= 1 << ((bit - 1) % 8)
		}
		if n == 0 || n > uint64(len(b)-entryHead) {
			continue
		}
		data := b[entryHead : entryHead+n]
		if storedChecksum(b) == entryChecksum(s.id, s.number, data) {
			return data, true
		}
	}
	return nil, false
}

// addEntry adds the present entry, which begins with head and has data.
func (s *segmentScan) addEntry(head, data []byte) {
	f := Finding{First: s.number, Last: s.number, Reason: "its checksum is wrong", Data: bytes.Clone(data)}
	if original, found := correctFlippedBit(s.id, s.number, storedChecksum(head), data); found {
		f.Reason, f.Data, f.Corrected = "one bit of it has flipped", original, true
	}
	s.addFinding(f)
}

func (s *segmentScan) addFinding(f Finding) {
	if f.Last < s.from {
		return
	}
	f.First = max(f.First, s.from)
	s.findings = append(s.findings, f)
}

// end judges what follows the last intact entry. Entries below acknowledged are lost
// there. What is more is an incomplete write, unless one flipped bit explains it.
func (s *segmentScan) end(acknowledged uint64) {
	tail := s.tail()
	if s.number < acknowledged {
		for s.number < acknowledged && s.damagedEntry(len(s.b)) {
		}
		tail = s.tail()
		switch lost := acknowledged - s.number; {
		case lost == 1 && len(tail) > entryHead:
			s.addEntry(tail, tail[entryHead:])
		case lost > 0:
			s.addFinding(Finding{First: s.number, Last: acknowledged - 1, Reason: "gone from the end of the log"})
		}
		s.number = acknowledged
		return
	}
	if len(tail) < entryHead {
		return
	}
	data, found := s.dataDespiteHead(s.b[s.at:])
	if n, extent, plausible := entryAt(s.b[s.at:]); !found && plausible && n == s.number {
		data, found = correctFlippedBit(s.id, n, storedChecksum(s.b[s.at:]), extent)
	}
	if found {
		s.addFinding(Finding{First: s.number, Last: s.number, Reason: "one bit of it has flipped",
			Data: bytes.Clone(data), Corrected: true})
		s.at, s.number = s.at+entrySize(len(data)), s.number+1
	}
}

// tail returns what follows the last entry, without the zeros at its end.
func (s *segmentScan) tail() []byte { return bytes.TrimRight(s.b[min(s.at, len(s.b)):], "\x00") }
