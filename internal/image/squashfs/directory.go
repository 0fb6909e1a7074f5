package squashfs

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/roost-batch/roost"
)

// Entry is a name in a directory.
type Entry struct {
	Name string
	Ref  Ref
}

// The numbers of listings.
const (
	listingOverhead = 3 // the size of a listing counts "." and ".."
	headerBytes     = 12
	entryBytes      = 8
	maxEntries      = 256 // behind one header
)

// ReadDirectory lists a directory, in the order of its names.
func (f *FileSystem) ReadDirectory(n *Inode) ([]Entry, error) {
	if n.Type != Directory {
		return nil, errors.New("squashfs: it is no directory")
	}
	if n.listed <= listingOverhead {
		return nil, nil
	}
	m := f.metadataAt(f.super.DirTable, n.start, n.offset)
	b, err := m.bytes(n.listed - listingOverhead)
	if err != nil {
		return nil, fmt.Errorf("directory: %w", err)
	}
	le := binary.LittleEndian
	var all []Entry
	for len(b) > 0 {
		if len(b) < headerBytes {
			return nil, errShortListing
		}
		count, block := int64(le.Uint32(b))+1, Ref(le.Uint32(b[4:]))
		if count > maxEntries {
			return nil, fmt.Errorf("directory: %w: %d names behind one header", roost.Invalid, count)
		}
		b = b[headerBytes:]
		for range count {
			if len(b) < entryBytes {
				return nil, errShortListing
			}
			size := int(le.Uint16(b[6:])) + 1
			if len(b) < entryBytes+size {
				return nil, errShortListing
			}
			all = append(all, Entry{string(b[entryBytes : entryBytes+size]), block<<16 | Ref(le.Uint16(b))})
			b = b[entryBytes+size:]
		}
	}
	return all, nil
}

// errShortListing says that a listing ends within an entry.
var errShortListing = fmt.Errorf("directory: %w: its listing ends too early", roost.Invalid)
