// Package erofs writes file systems of the kind EROFS, which the kernel mounts read-only.
//
// It exists although github.com/erofs/go-erofs writes them, too: a hard link is one inode
// with several names here, file contents go to their place in the image at once instead
// of to a second file first, and a tree of a million files fits in memory. The tests read
// what it writes with that library, with fsck.erofs, and with the kernel.
//
//	block 0     superblock, at byte 1024
//	...         contents of files, each at the begin of a block
//	...         large directories
//	...         inodes, with small directories and symbolic links behind them
//
// Nothing is compressed, and the order is that of the sorted names, so equal trees make
// equal bytes. The layout is that of fs/erofs/erofs_fs.h of Linux.
package erofs
