package userfiles

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/roost-batch/roost"
)

// ListLimit bounds a list of files. Users decide how many files they make and how long
// the names are, and lists are sent in messages.
type ListLimit struct {
	Entries int // files and directories
	Names   int // bytes of their names together
}

// defaultListLimit returns the bound of lists without another bound.
func defaultListLimit() ListLimit { return ListLimit{MaxEntries, MaxNames} }

// limitedList is a list that grows up to its bound.
type limitedList struct {
	limit ListLimit
	list  []TransferEntry
	names int
}

// add appends an entry. If the list would exceed its bound the error is roost.Exhausted.
func (l *limitedList) add(e TransferEntry) error {
	l.names += len(e.Name)
	switch {
	case len(l.list) >= l.limit.Entries:
		return fmt.Errorf("%w: more than %d files to transfer", roost.Exhausted, l.limit.Entries)
	case l.names > l.limit.Names:
		return fmt.Errorf("%w: the names of the files to transfer have more than %v together", roost.Exhausted,
			roost.Bytes(l.limit.Names))
	}
	l.list = append(l.list, e)
	return nil
}

// addFile appends the file at path, with a name for the other end.
func (l *limitedList) addFile(path, name string, info fs.FileInfo) error {
	e := entryOf(name, info)
	e.Source = filepath.Clean(path)
	e.measure(e.Source)
	if err := l.add(e); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// pageLength returns how many of the entries go into one reply. That is pageSize, or as
// many as certainly fit into a message, because JSON writes a byte of a name in at most
// six.
func pageLength(entries []TransferEntry) int {
	const (
		jsonByte  = 6
		jsonEntry = 256 // of an entry without its names
	)
	size := 0
	for i, e := range entries[:min(len(entries), pageSize)] {
		if size += jsonEntry + jsonByte*(len(e.Name)+len(e.Source)); size > maxHeader/2 && i > 0 {
			return i
		}
	}
	return min(len(entries), pageSize)
}
