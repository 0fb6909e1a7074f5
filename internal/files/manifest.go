package files

import (
	"fmt"
	"path"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// MaxSparse bounds the sizes of the files of one transfer together, with their holes.
const MaxSparse = 64 << 40

// Manifest says what a transfer is to bring. What comes is compared with it: a name comes once, a file has as many bytes as its entry said,
// and nothing lies below a file.
type Manifest struct {
	Entries []*wire.FileEntry          // exactly these come; nil: what Asked allows
	Asked   func(*wire.FileEntry) bool // without Entries: whether somebody has asked for that; nil: anything
	Totals  *wire.TransferTotals       // without Entries: so much comes; nil: nobody has said
	Bytes   int64                      // of data at most, which holes are not; 0: any number
}

// MismatchError says that what came is not what was asked for or announced. Whoever sent it is at fault.
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
	*Manifest
	announced map[string]*wire.FileEntry // with Entries: these
	came      map[string]bool            // by name: whether it is a directory
	above     map[string]bool            // directories with something in them
	now       *wire.FileEntry            // the file that comes
	size      int64                      // of it, so far
	data      int64                      // likewise, without its holes
	files     int
	bytes     int64 // the sizes of the files so far
	stored    int64 // data that came
}

func (m *Manifest) check() *manifestCheck {
	c := &manifestCheck{Manifest: m, came: map[string]bool{}, above: map[string]bool{}}
	if m.Entries != nil {
		c.announced = make(map[string]*wire.FileEntry, len(m.Entries))
		for _, e := range m.Entries {
			c.announced[e.GetName()] = e
		}
	}
	return c
}

// begin takes in the beginning of a file, or a directory.
func (c *manifestCheck) begin(e *wire.FileEntry) error {
	name := e.GetName()
	if name == "." { // what patterns like "a* => ." come to
		return fmt.Errorf("%q: %w: it is no name for a file", name, roost.Invalid)
	}
	if CheckName(name) != nil {
		return &MismatchError{name, "it is not a plain name below the directory"}
	}
	if _, twice := c.came[name]; twice {
		return &MismatchError{name, "it came twice"}
	}
	if err := c.asked(e); err != nil {
		return err
	}
	if c.above[name] && !e.GetDir() {
		return fmt.Errorf("%.200q: %w: it is a file, and others are below it", name, roost.Invalid)
	}
	for up := path.Dir(name); up != "."; up = path.Dir(up) {
		if dir, came := c.came[up]; came && !dir {
			return fmt.Errorf("%.200q: %w: it is below %.200q, which is a file", name, roost.Invalid, up)
		}
		c.above[up] = true
	}
	if e.GetSize() < 0 {
		return &MismatchError{name, fmt.Sprintf("it is said to have %d bytes", e.GetSize())}
	}
	if e.GetSize() > MaxSparse-c.bytes {
		return fmt.Errorf("%.200q: %w: the files of one transfer have more than %v together, with their holes", name, roost.Exhausted, roost.Bytes(MaxSparse))
	}
	if c.files >= MaxEntries {
		return fmt.Errorf("%.200q: %w: more than %d files", name, roost.Exhausted, MaxEntries)
	}
	c.files++
	c.bytes += e.GetSize()
	c.came[name] = e.GetDir()
	c.now, c.size, c.data = e, 0, 0
	return nil
}

// asked compares an entry with those that were announced, or with what was asked for.
func (c *manifestCheck) asked(e *wire.FileEntry) error {
	name := e.GetName()
	if c.Entries == nil {
		if c.Asked != nil && !c.Asked(e) {
			return &MismatchError{name, "nobody has asked for it"}
		}
		return nil
	}
	announced := c.announced[name]
	switch {
	case announced == nil:
		return &MismatchError{name, "nobody has asked for it"}
	case announced.GetDir() != e.GetDir():
		return &MismatchError{name, fmt.Sprintf("a %s was announced, and a %s came", sortOf(announced), sortOf(e))}
	case announced.GetSize() != e.GetSize():
		return &MismatchError{name, fmt.Sprintf("%d bytes were announced, and %d came", announced.GetSize(), e.GetSize())}
	}
	return nil
}

func sortOf(e *wire.FileEntry) string {
	if e.GetDir() {
		return "directory"
	}
	return "file"
}

// mostData is how much data can come of a file of which so much is stored: some file systems compress it, and what they count as data changes a little
// with time.
func mostData(stored int64) int64 { return min(max(stored, 0), MaxSparse)*sparseBelow + 64<<10 }

// piece takes in a piece of the file, behind a hole.
func (c *manifestCheck) piece(hole int64, data int) error {
	left := c.now.GetSize() - c.size
	if hole < 0 || hole > left || int64(data) > left-hole {
		return &MismatchError{c.now.GetName(), fmt.Sprintf("%d bytes were announced, and more came", c.now.GetSize())}
	}
	c.size += hole + int64(data)
	c.stored += int64(data)
	c.data += int64(data)
	if e := c.announced[c.now.GetName()]; e != nil && e.Stored != nil && c.data > mostData(e.GetStored()) {
		return &MismatchError{c.now.GetName(), fmt.Sprintf("%v of it were announced as stored, and more data came", roost.Bytes(e.GetStored()))}
	}
	if c.Bytes > 0 && c.stored > c.Bytes {
		return fmt.Errorf("%.200q: %w: the files have more than %v together", c.now.GetName(), roost.Exhausted, roost.Bytes(c.Bytes))
	}
	return nil
}

// fileEnd takes in the end of the file.
func (c *manifestCheck) fileEnd() error {
	if c.size != c.now.GetSize() {
		return &MismatchError{c.now.GetName(), fmt.Sprintf("%d bytes were announced, and %d came", c.now.GetSize(), c.size)}
	}
	return nil
}

// end takes in the end of the transfer.
func (c *manifestCheck) end() error {
	for _, e := range c.Entries {
		if _, came := c.came[e.GetName()]; !came {
			return &MismatchError{e.GetName(), "it was announced, and did not come"}
		}
	}
	if t := c.Totals; t != nil && c.Entries == nil && (t.GetFiles() != uint64(c.files) || t.GetBytes() != c.bytes) {
		return &MismatchError{Cause: fmt.Sprintf("%d files of %d bytes were announced, and %d of %d came", t.GetFiles(), t.GetBytes(), c.files, c.bytes)}
	}
	return nil
}

// Compare reports how a list of entries differs from the manifest, as a transfer of files that are as long as their entries say; nil if it does not.
func (m *Manifest) Compare(came []*wire.FileEntry) error {
	c := m.check()
	for _, e := range came {
		if err := c.begin(e); err != nil {
			return err
		}
	}
	return c.end()
}
