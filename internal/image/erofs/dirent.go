package erofs

import (
	"encoding/binary"
	"slices"
	"sort"
)

// The types of files in directories.
const (
	direntRegular   = 1
	direntDirectory = 2
	direntSymlink   = 7
)

// direntNames returns the names in the form of a directory: sorted, with those of itself
// and its parent.
func direntNames(n *Node) []string {
	names := n.names()
	for _, name := range []string{".", ".."} {
		at := sort.SearchStrings(names, name)
		names = slices.Insert(names, at, name)
	}
	return names
}

// direntBlocks splits names into those of each block.
func direntBlocks(names []string) (blocks [][]string) {
	for len(names) > 0 {
		used, count := 0, 0
		for count < len(names) && used+direntBytes+len(names[count]) <= BlockBytes {
			used += direntBytes + len(names[count])
			count++
		}
		blocks = append(blocks, names[:count])
		names = names[count:]
	}
	return blocks
}

// directoryBytes returns the size of a directory: whole blocks but the last.
func directoryBytes(n *Node) int64 {
	blocks := direntBlocks(direntNames(n))
	size := (len(blocks) - 1) * BlockBytes
	for _, name := range blocks[len(blocks)-1] {
		size += direntBytes + len(name)
	}
	return int64(size)
}

// writeDirectory encodes a directory, when all inodes have their places.
func (n *Node) writeDirectory(parent *Node) {
	var b []byte
	for _, names := range direntBlocks(direntNames(n)) {
		if rest := len(b) % BlockBytes; rest != 0 {
			b = append(b, make([]byte, BlockBytes-rest)...)
		}
		nameOffset := len(names) * direntBytes
		for _, name := range names {
			c := n.Children[name]
			switch name {
			case ".":
				c = n
			case "..":
				c = parent
			}
			b = binary.LittleEndian.AppendUint64(b, c.offset/slotBytes)
			b = binary.LittleEndian.AppendUint16(b, uint16(nameOffset))
			b = append(b, direntType(c), 0)
			nameOffset += len(name)
		}
		for _, name := range names {
			b = append(b, name...)
		}
	}
	if n.blocks, n.inline = nil, nil; len(b) > mostInline {
		n.blocks = b
	} else {
		n.inline = b
	}
}

func direntType(n *Node) byte {
	switch {
	case n.IsDirectory():
		return direntDirectory
	case n.IsSymlink():
		return direntSymlink
	}
	return direntRegular
}
