package userfiles

import (
	"fmt"
	"path"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// MaxSparse bounds the sum of the file sizes of one transfer, including holes, in bytes.
const MaxSparse = 64 << 40

// TransferManifest describes an expected transfer, with which the received one is
// compared. A name occurs once, a file has as many bytes as its entry says, and nothing
// is below a file.
type TransferManifest struct {
	Entries []*wire.FileEntry          // exactly these entries are expected; nil: what IsAsked allows
	IsAsked func(*wire.FileEntry) bool // without Entries: whether an entry was requested; nil: any
	Totals  *wire.TransferTotals       // without Entries: the announced totals; nil: unknown
	Bytes   int64                      // the most bytes of data, without holes; 0: no limit
}

// MismatchError means that a transfer is not what was requested or announced. Its sender
// is at fault.
type MismatchError struct {
	Name  string // of a file; empty: no particular one
	Cause string
}

func (e *MismatchError) Error() string {
	if e.Name == "" {
		return e.Cause
	}
	return fmt.Sprintf("%.200q: %s", e.Name, e.Cause)
}

// Unwrap returns roost.Invalid, the kind of the error.
func (e *MismatchError) Unwrap() error { return roost.Invalid }

// manifestCheck compares a transfer with its manifest, step by step.
type manifestCheck struct {
	*TransferManifest
	announced  map[string]*wire.FileEntry // the manifest's Entries, by name
	received   map[string]bool            // by name: whether it is a directory
	parentDirs map[string]bool            // directories with contents
	current    *wire.FileEntry            // the file that is being received
	size       int64                      // its size so far
	data       int64                      // its data so far, without holes
	files      int
	bytes      int64 // sum of the sizes of the files so far
	stored     int64 // sum of the received data
}

func (m *TransferManifest) check() *manifestCheck {
	c := &manifestCheck{TransferManifest: m, received: map[string]bool{}, parentDirs: map[string]bool{}}
	if m.Entries != nil {
		c.announced = make(map[string]*wire.FileEntry, len(m.Entries))
		for _, e := range m.Entries {
			c.announced[e.GetName()] = e
		}
	}
	return c
}

// beginEntry checks the beginning of a file, or a directory.
func (c *manifestCheck) beginEntry(e *wire.FileEntry) error {
	name := e.GetName()
	if name == "." { // the result of patterns like "a* => ."
		return fmt.Errorf("%q: %w: it is no name for a file", name, roost.Invalid)
	}
	if CheckName(name) != nil {
		return &MismatchError{name, "it is not a plain name below the directory"}
	}
	if _, twice := c.received[name]; twice {
		return &MismatchError{name, "it came twice"}
	}
	if err := c.checkAsked(e); err != nil {
		return err
	}
	if c.parentDirs[name] && !e.GetDir() {
		return fmt.Errorf("%.200q: %w: it is a file, and others are below it", name, roost.Invalid)
	}
	for up := path.Dir(name); up != "."; up = path.Dir(up) {
		if dir, came := c.received[up]; came && !dir {
			return fmt.Errorf("%.200q: %w: it is below %.200q, which is a file", name, roost.Invalid, up)
		}
		c.parentDirs[up] = true
	}
	if e.GetSize() < 0 {
		return &MismatchError{name, fmt.Sprintf("it is said to have %d bytes", e.GetSize())}
	}
	if e.GetSize() > MaxSparse-c.bytes {
		return fmt.Errorf("%.200q: %w: the files of one transfer have more than %v together, with their holes", name,
			roost.Exhausted, roost.Bytes(MaxSparse))
	}
	if c.files >= MaxEntries {
		return fmt.Errorf("%.200q: %w: more than %d files", name, roost.Exhausted, MaxEntries)
	}
	c.files++
	c.bytes += e.GetSize()
	c.received[name] = e.GetDir()
	c.current, c.size, c.data = e, 0, 0
	return nil
}

// checkAsked compares an entry with the announced ones, or with what was requested.
func (c *manifestCheck) checkAsked(e *wire.FileEntry) error {
	name := e.GetName()
	if c.Entries == nil {
		if c.IsAsked != nil && !c.IsAsked(e) {
			return &MismatchError{name, "nobody has asked for it"}
		}
		return nil
	}
	announced := c.announced[name]
	switch {
	case announced == nil:
		return &MismatchError{name, "nobody has asked for it"}
	case announced.GetDir() != e.GetDir():
		return &MismatchError{name, fmt.Sprintf("a %s was announced, and a %s came", entryKind(announced),
			entryKind(e))}
	case announced.GetSize() != e.GetSize():
		return &MismatchError{name, fmt.Sprintf("%d bytes were announced, and %d came", announced.GetSize(),
			e.GetSize())}
	}
	return nil
}

func entryKind(e *wire.FileEntry) string {
	if e.GetDir() {
		return "directory"
	}
	return "file"
}

// maxData returns the most data of a file with stored bytes on its disk. Some file
// systems compress files, and their count changes slightly over time.
func maxData(stored int64) int64 { return min(max(stored, 0), MaxSparse)*sparseThreshold + 64<<10 }

// addPiece checks a piece of the file after a hole.
func (c *manifestCheck) addPiece(hole int64, data int) error {
	left := c.current.GetSize() - c.size
	if hole < 0 || hole > left || int64(data) > left-hole {
		return &MismatchError{c.current.GetName(),
			fmt.Sprintf("%d bytes were announced, and more came", c.current.GetSize())}
	}
	c.size += hole + int64(data)
	c.stored += int64(data)
	c.data += int64(data)
	if e := c.announced[c.current.GetName()]; e != nil && e.Stored != nil && c.data > maxData(e.GetStored()) {
		return &MismatchError{c.current.GetName(),
			fmt.Sprintf("%v of it were announced as stored, and more data came", roost.Bytes(e.GetStored()))}
	}
	if c.Bytes > 0 && c.stored > c.Bytes {
		return fmt.Errorf("%.200q: %w: the files have more than %v together", c.current.GetName(), roost.Exhausted,
			roost.Bytes(c.Bytes))
	}
	return nil
}

// endFile checks the end of the file.
func (c *manifestCheck) endFile() error {
	if c.size != c.current.GetSize() {
		return &MismatchError{c.current.GetName(),
			fmt.Sprintf("%d bytes were announced, and %d came", c.current.GetSize(), c.size)}
	}
	return nil
}

// endTransfer checks the end of the transfer.
func (c *manifestCheck) endTransfer() error {
	for _, e := range c.Entries {
		if _, came := c.received[e.GetName()]; !came {
			return &MismatchError{e.GetName(), "it was announced, and did not come"}
		}
	}
	if t := c.Totals; t != nil && c.Entries == nil && (t.GetFiles() != uint64(c.files) || t.GetBytes() != c.bytes) {
		return &MismatchError{Cause: fmt.Sprintf("%d files of %d bytes were announced, and %d of %d came", t.GetFiles(),
			t.GetBytes(), c.files, c.bytes)}
	}
	return nil
}

// Compare returns how a list of entries differs from the manifest, or nil. The entries
// count as a transfer of files of the listed sizes.
func (m *TransferManifest) Compare(came []*wire.FileEntry) error {
	c := m.check()
	for _, e := range came {
		if err := c.beginEntry(e); err != nil {
			return err
		}
	}
	return c.endTransfer()
}
