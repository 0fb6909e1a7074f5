// Package appendlog is a log of numbered entries on disk. An entry is durable after one
// write and one fdatasync(2). The log is cut only from its beginning, when its owner has
// what the entries say elsewhere.
//
// The log is a directory of segments. A segment is named by the number of its first
// entry:
//
//	header   word "roostseg", format, id of the log, number of the first entry, checksum
//	entry    length, checksum, number, data, and zeros up to a multiple of 8 bytes
//	...
//	zeros    room for the next entries
//
// A checksum covers the id of the log, the number, the length and the data. So an entry
// in a wrong place, or of another log, is detected like a flipped bit. The file grows
// ahead of its entries by zeros, which are written together with the entry that needs the
// room: otherwise each fdatasync would also have to write the new size of the file.
//
// Entries are on disk in the order of their numbers: one is written only when all earlier
// ones are synced. So what follows the last intact entry is the incomplete write of one
// that nobody was promised, and [Open] drops it. It is damage if an intact entry follows,
// if the mark beside the log (package logmark) has a higher number, or if one flipped bit
// explains it.
//
// hashicorp/raft-wal, which package replica uses for raft, appends at the same speed. But
// it cannot continue after a full disk until it is opened again: if there is no room for
// its next segment it closes the last one and logs the error. It stores the list of its
// segments in a bbolt file, with two more syncs for each cut. And it does not tell which
// entries a damage affects.
package appendlog
