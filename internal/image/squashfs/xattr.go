package squashfs

import (
	"encoding/binary"
	"fmt"

	"github.com/roost-batch/roost"
)

// The numbers of extended attributes.
const (
	noXattrs        = 0xffffffff
	xattrIDBytes    = 16
	xattrTableBytes = 16 // in front of the list of blocks
	xattrElsewhere  = 0x100
	maxXattrs       = 1 << 16 // of one file
	maxXattrBytes   = 1 << 16 // of one value
)

// xattrs returns the extended attributes with a number.
func (f *FileSystem) xattrs(number uint32) (map[string]string, error) {
	if f.super.XattrTable == noTable {
		return nil, fmt.Errorf("%w: it has extended attributes, and the file system none", roost.Invalid)
	}
	le := binary.LittleEndian
	var table [xattrTableBytes]byte
	if err := f.readAt(table[:], int64(f.super.XattrTable)); err != nil {
		return nil, err
	}
	if number >= le.Uint32(table[8:]) {
		return nil, fmt.Errorf("%w: it has extended attributes %d of %d", roost.Invalid, number, le.Uint32(table[8:]))
	}
	start := le.Uint64(table[:])
	entry, err := f.tableEntry(f.super.XattrTable+xattrTableBytes, int64(number), xattrIDBytes)
	if err != nil {
		return nil, err
	}
	ref, count := le.Uint64(entry), le.Uint32(entry[8:])
	if count > maxXattrs {
		return nil, fmt.Errorf("%w: a file has %d extended attributes", roost.Exhausted, count)
	}
	m := f.metadataAt(start, int64(ref>>16), int(ref&0xffff))
	all := map[string]string{}
	for range count {
		name, value, err := f.xattr(m, start)
		if err != nil {
			return nil, fmt.Errorf("extended attribute: %w", err)
		}
		all[name] = value
	}
	return all, nil
}

// xattr reads one extended attribute. Its value may be at another place.
func (f *FileSystem) xattr(m *metadataReader, start uint64) (name, value string, err error) {
	var h struct{ Type, Size uint16 }
	if err := m.decode(&h); err != nil {
		return "", "", err
	}
	prefixes := []string{"user.", "trusted.", "security."}
	if kind := int(h.Type &^ xattrElsewhere); kind >= len(prefixes) {
		return "", "", fmt.Errorf("%w: no name has the prefix %d", roost.Invalid, kind)
	} else {
		name = prefixes[kind]
	}
	b, err := m.bytes(int(h.Size))
	if err != nil {
		return "", "", err
	}
	name += string(b)
	var size uint32
	if err := m.decode(&size); err != nil {
		return "", "", err
	}
	if h.Type&xattrElsewhere != 0 {
		var ref uint64
		if size != pointerBytes {
			return "", "", fmt.Errorf("%w: a reference of %d bytes", roost.Invalid, size)
		}
		if err := m.decode(&ref); err != nil {
			return "", "", err
		}
		m = f.metadataAt(start, int64(ref>>16), int(ref&0xffff))
		if err := m.decode(&size); err != nil {
			return "", "", err
		}
	}
	if size > maxXattrBytes {
		return "", "", fmt.Errorf("%w: a value of %d bytes", roost.Invalid, size)
	}
	b, err = m.bytes(int(size))
	return name, string(b), err
}
