// Package squashfs reads file systems of SquashFS 4.0, which are what SIF files have in
// them.
//
// They may be anybody's work, so everything in them is checked: each reference, size and
// count is bounded by what the format allows, and nothing is followed twice without a
// caller who asks. The layout is that of Linux (Documentation/filesystems/squashfs.rst):
//
//	superblock | data and fragments | inodes | directories | tables
//
// Inodes, directories and tables are in metadata blocks of at most 8 KiB, each of which
// may be compressed.
package squashfs
