package erofs

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// inodeLayout gives each node of a tree its place.
type inodeLayout struct {
	nodes   []*Node // in the order of their places
	parents map[*Node]*Node
	next    uint64
}

// count checks the tree below a node, and counts the names of each.
func (l *inodeLayout) count(n *Node, path string) error {
	if err := n.check(); err != nil {
		return fmt.Errorf("/%s: %w", path, err)
	}
	n.links, n.offset = 2, 0
	for name, c := range n.Children {
		if name == "" || name == "." || name == ".." || len(name) > MaxNameBytes || strings.ContainsAny(name, "/\x00") {
			return fmt.Errorf("/%s: no file can have the name %.300q", path, name)
		}
		if c.IsDirectory() {
			n.links++
			if err := l.count(c, strings.TrimPrefix(path+"/"+name, "/")); err != nil {
				return err
			}
			continue
		}
		if err := c.check(); err != nil {
			return fmt.Errorf("/%s/%s: %w", path, name, err)
		}
		c.links, c.offset = 0, 0
	}
	return nil
}

// place gives places to a directory and all below it. An inode and what is behind it are
// in one block.
func (l *inodeLayout) place(n, parent *Node) error {
	if l.parents == nil {
		l.parents = map[*Node]*Node{}
	}
	l.parents[n] = parent
	if n.Size = directoryBytes(n); n.Size > mostInline {
		l.add(n, 0)
	} else {
		l.add(n, int(n.Size))
	}
	names := n.names()
	for _, name := range names {
		c := n.Children[name]
		switch {
		case c.IsDirectory():
			continue
		case c.IsSymlink():
			c.Size = int64(len(c.Target))
			if c.links++; c.links > 1 {
				continue
			}
			if len(c.Target) > mostInline {
				c.blocks = []byte(c.Target)
				l.add(c, 0)
			} else {
				c.inline = []byte(c.Target)
				l.add(c, len(c.inline))
			}
		default:
			if c.links++; c.links == 1 {
				l.add(c, 0)
			}
		}
	}
	for _, name := range names {
		if c := n.Children[name]; c.IsDirectory() {
			if err := l.place(c, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// add places one inode with inline bytes behind it.
func (l *inodeLayout) add(n *Node, inline int) {
	size := uint64(inodeBytes + xattrBytes(n.Xattrs) + inline)
	if l.next%BlockBytes+size > BlockBytes {
		l.next = (l.next + BlockBytes - 1) / BlockBytes * BlockBytes
	}
	n.offset = l.next
	l.next = (l.next + size + slotBytes - 1) / slotBytes * slotBytes
	l.nodes = append(l.nodes, n)
	n.number = uint32(len(l.nodes))
}

// encode returns the inode, its attributes, and what is behind them.
func (n *Node) encode() []byte {
	b := make([]byte, inodeBytes, inodeBytes+xattrBytes(n.Xattrs)+len(n.inline))
	le := binary.LittleEndian
	format := uint16(formatPlain)
	if len(n.inline) > 0 {
		format = formatInline
	}
	le.PutUint16(b[0:], format)
	if x := xattrBytes(n.Xattrs); x > 0 {
		le.PutUint16(b[2:], uint16((x-xattrHeaderBytes)/4+1))
	}
	le.PutUint16(b[4:], n.Mode)
	le.PutUint64(b[8:], uint64(n.Size))
	le.PutUint32(b[16:], n.Block)
	le.PutUint32(b[20:], n.number)
	le.PutUint32(b[24:], n.UID)
	le.PutUint32(b[28:], n.GID)
	le.PutUint64(b[32:], uint64(n.Mtime))
	le.PutUint32(b[40:], n.MtimeNs)
	le.PutUint32(b[44:], n.links)
	return append(append(b, encodeXattrs(n.Xattrs)...), n.inline...)
}

// The form of extended attributes behind an inode.
const (
	xattrHeaderBytes = 12
	xattrEntryBytes  = 4
	xattrIndexUser   = 1
	xattrPrefix      = "user."
)

func xattrEntrySize(name, value string) int {
	return (xattrEntryBytes + len(name) - len(xattrPrefix) + len(value) + 3) / 4 * 4
}

// xattrBytes returns the size of encodeXattrs.
func xattrBytes(all map[string]string) int {
	if len(all) == 0 {
		return 0
	}
	size := xattrHeaderBytes
	for name, value := range all {
		size += xattrEntrySize(name, value)
	}
	return size
}

func encodeXattrs(all map[string]string) []byte {
	if len(all) == 0 {
		return nil
	}
	b := make([]byte, xattrHeaderBytes, xattrBytes(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value, short := all[name], strings.TrimPrefix(name, xattrPrefix)
		end := len(b) + xattrEntrySize(name, value)
		b = append(b, byte(len(short)), xattrIndexUser)
		b = binary.LittleEndian.AppendUint16(b, uint16(len(value)))
		b = append(append(b, short...), value...)
		b = append(b, make([]byte, end-len(b))...)
	}
	return b
}
