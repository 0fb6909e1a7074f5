package userfiles

import (
	"fmt"
	"path"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// MaxSparse bounds the sizes of the files of one transfer together, with their holes.
const MaxSparse = 64 << 40

// TransferManifest says what a transfer is to bring. What comes is compared with it: a
// name comes once, a file has as many bytes as its entry said, and nothing lies below a
// file.
type TransferManifest struct {
	Entries []*wire.FileEntry          // exactly these come; nil: what Asked allows
	IsAsked func(*wire.FileEntry) bool // without Entries: whether somebody has asked for that; nil: anything
	Totals  *wire.TransferTotals       // without Entries: so much comes; nil: nobody has said
	Bytes   int64                      // of data at most, which holes are not; 0: any number
}

// MismatchError says that what came is not what was asked for or announced. Whoever sent
// it is at fault.
type MismatchError struct {
	Name  string // of a file; empty: none in particular
	Cause string
}

func (e *MismatchError) Error() string {
	if e.Name == "" {
		return e.Cause
	}
	return fmt.Sprintf("%.200q: %s", e.Name, e.Cause)
}

// Unwrap says what kind of error it is.
func (e *MismatchError) Unwrap() error { return roost.Invalid }

// manifestCheck compares a transfer with its manifest, one part after the other.
type manifestCheck struct {
	*TransferManifest
	announced  map[string]*wire.FileEntry // with Entries: these
	received   map[string]bool            // by name: whether it is a directory
	parentDirs map[string]bool            // directories with something in them
	current    *wire.FileEntry            // the file that comes
	size       int64                      // of it, so far
	data       int64                      // likewise, without its holes
	files      int
	bytes      int64 // the sizes of the files so far
	stored     int64 // data that came
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

// beginEntry takes in the beginning of a file, or a directory.
func (c *manifestCheck) beginEntry(e *wire.FileEntry) error {
	name := e.GetName()
	if name == "." { // what patterns like "a* => ." come to
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

// checkAsked compares an entry with those that were announced, or with what was asked
// for.
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

// maxData is how much data can come of a file of which so much is stored: some file
// systems compress it, and what they count as data changes a little with time.
func maxData(stored int64) int64 { return min(max(stored, 0), MaxSparse)*sparseThreshold + 64<<10 }

// addPiece takes in a piece of the file, behind a hole.
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

// endFile takes in the end of the file.
func (c *manifestCheck) endFile() error {
	if c.size != c.current.GetSize() {
		return &MismatchError{c.current.GetName(),
			fmt.Sprintf("%d bytes were announced, and %d came", c.current.GetSize(), c.size)}
	}
	return nil
}

// endTransfer takes in the end of the transfer.
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

// Compare reports how a list of entries differs from the manifest, as a transfer of files
// that are as long as their entries say; nil if it does not.
func (m *TransferManifest) Compare(came []*wire.FileEntry) error {
	c := m.check()
	for _, e := range came {
		if err := c.beginEntry(e); err != nil {
			return err
		}
	}
	return c.endTransfer()
}
