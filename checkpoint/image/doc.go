// Package image reads and writes the file of a checkpoint. The file has CRIU's images, a
// snapshot of the scratch directory and the captured output, in one stream that nobody
// without the attempt's key can read, make or change.
//
// A restored process runs whatever its image says, and the program that restores it has
// privileges. So not a byte of an image may be used before it is known to come from a
// node of the pool. A digest at the end would come too late: decompressor and unpacker
// would already have read everything. So the stream is cut into chunks; each is
// encrypted, and each ends with the HMAC-SHA256 of everything before it:
//
//	"RoostCkp" version(2)=2 salt(32) length(4) header tag(32)
//	length(4) data tag(32)        any number of times, length <= 1 MiB
//	length(4)=0 tag(32)           the end
//
// Numbers are little endian. The header and the data are encrypted with AES-256 in
// counter mode, one stream from the header to the end. A tag covers all bytes before it,
// in encrypted form, except the other tags. Both keys are derived with HKDF-SHA256 (RFC
// 5869) from the attempt's key and the image's random salt, each for its own use, so that
// no two images share a stream. The last tag is the MAC of the image, which the schedd
// stores in its journal. An older image of the same task does not pass for a newer one,
// and no other image of the task passes, even if it was made with the key. (The tag of an
// authenticating cipher such as AES-GCM does not guarantee that: with the key one can
// find other bytes for the same tag.)
//
// Version 1 has no salt; nothing in it is encrypted, and the key of the tags is the
// attempt's. It is read and not written.
//
// The data are zstd of a tar with flat names: criu/NAME, io/NAME, and scratch.tar.
package image
