package userfiles

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/roost-batch/roost"
)

// ListLimit bounds a list of files. Who makes files decides how many they are and what
// they are called, and lists of them travel in messages.
type ListLimit struct {
	Entries int // files and directories
	Names   int // bytes of their names together
}

// defaultListLimit bounds lists for which no other bound was given.
func defaultListLimit() ListLimit { return ListLimit{MaxEntries, MaxNames} }

// limitedList is a list that grows up to its bound.
type limitedList struct {
	limit ListLimit
	list  []TransferEntry
	names int
}

// add appends an entry, unless the list would be over its bound: that is roost.Exhausted.
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

// addFile appends what lies at path, and is called name at the other end.
func (l *limitedList) addFile(path, name string, info fs.FileInfo) error {
	e := entryOf(name, info)
	e.Source = filepath.Clean(path)
	e.measure(e.Source)
	if err := l.add(e); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// pageLength is how many of the entries go into one reply: pageSize of them, or as many
// as surely have room in a message. JSON writes a byte of a name in six at most.
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
