package erofs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The types of files in the mode of a node, as of stat(2).
const (
	TypeMask      = 0o170000
	TypeDirectory = 0o040000
	TypeRegular   = 0o100000
	TypeSymlink   = 0o120000
)

// The bounds of what a node can have.
const (
	MaxNameBytes   = 255
	MaxTargetBytes = 4095
	MaxXattrBytes  = 2048 // of all attributes of a node, as they are stored
)

// Node is a file of the tree. A node with several names is a hard link.
type Node struct {
	Mode     uint16 // type and permissions, as of stat(2)
	UID, GID uint32
	Mtime    int64 // unix seconds
	MtimeNs  uint32
	Xattrs   map[string]string // names begin with "user."
	Children map[string]*Node  // of a directory
	Target   string            // of a symbolic link
	Size     int64             // bytes of a regular file
	Block    uint32            // where Writer.WriteData put them

	offset uint64 // in the inode area; 0: not placed
	number uint32
	links  uint32
	blocks []byte // a directory that does not fit behind its inode
	inline []byte // what is behind the inode
}

// NewDirectory returns an empty directory.
func NewDirectory(permissions uint16) *Node {
	return &Node{Mode: TypeDirectory | permissions, Children: map[string]*Node{}}
}

// IsDirectory reports whether the node is a directory.
func (n *Node) IsDirectory() bool { return n.Mode&TypeMask == TypeDirectory }

// IsSymlink reports whether the node is a symbolic link.
func (n *Node) IsSymlink() bool { return n.Mode&TypeMask == TypeSymlink }

// IsRegular reports whether the node is a regular file.
func (n *Node) IsRegular() bool { return n.Mode&TypeMask == TypeRegular }

// names returns the names in a directory, sorted by their bytes.
func (n *Node) names() []string { return slices.Sorted(maps.Keys(n.Children)) }

// check returns why a node cannot be written.
func (n *Node) check() error {
	switch {
	case !n.IsDirectory() && !n.IsRegular() && !n.IsSymlink():
		return fmt.Errorf("mode %o is none of a file, a directory or a symbolic link", n.Mode)
	case n.IsSymlink() && (n.Target == "" || len(n.Target) > MaxTargetBytes):
		return fmt.Errorf("a symbolic link has a target of %d bytes, and %d is the most", len(n.Target), MaxTargetBytes)
	case n.Size < 0:
		return errors.New("a negative size")
	case xattrBytes(n.Xattrs) > MaxXattrBytes:
		return fmt.Errorf("its extended attributes take %d bytes, and %d is the most", xattrBytes(n.Xattrs),
			MaxXattrBytes)
	}
	for name := range n.Xattrs {
		if short, ok := strings.CutPrefix(name, xattrPrefix); !ok || short == "" || len(short) > MaxNameBytes {
			return fmt.Errorf("the extended attribute %.300q is none of \"user.\"", name)
		}
	}
	return nil
}
