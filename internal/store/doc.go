// Package store holds blobs in a directory: container images, packages, and other files
// that many tasks share. A blob is named by its digest, so it never changes, and the same
// bytes are stored once.
//
//	DIR/format                   the version of this layout
//	DIR/lock                     held by the process that uses the directory
//	DIR/blobs/HH/HEX             a whole blob; HH is the begin of HEX
//	DIR/blobs/HH/HEX.manifest    the digests of its chunks
//	DIR/blobs/HH/HEX.owners      who is charged for it
//	DIR/incoming/HEX.data        a blob of which chunks are missing
//	DIR/incoming/HEX.manifest
//	DIR/incoming/NAME.new        a file whose digest is not known yet
//	DIR/pins/HEX/OWNER           an empty file: the blob must stay
//
// A blob is there completely or not at all. Its file gets its name after every chunk was
// compared with its digest and the disk has all of it. What was received before a crash
// is compared once more and need not be sent again.
//
// The package knows neither networks nor formats. Who may put, get or remove a blob is
// the caller's decision.
package store
