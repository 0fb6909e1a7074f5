// Package image is the file of a checkpoint: what CRIUDir wrote, a snapshot of the
// scratch directory and the captured output, in one stream that nobody without the
// attempt's key can read, make or change.
//
// A restored process runs whatever its image says, with privileges of the program that
// restores it in between; so not a byte of an image may be believed before it is known to
// come from a node of the pool. A digest at the end would come too late for the
// decompressor and the unpacker, which would have read it all by then. So the stream is
// cut into chunks, each is encrypted, and each ends with the HMAC-SHA256 of everything up
// to there:
//
//	"RoostCkp" version(2)=2 salt(32) length(4) header tag(32)
//	length(4) data tag(32)        any number of times, length <= 1 MiB
//	length(4)=0 tag(32)           the end
//
// Numbers are little endian. The header and the data are encrypted with AES-256 in
// counter mode, one stream from the header to the end. A tag covers all bytes before it,
// as they stand there, but the other tags. Both keys are derived with HKDF-SHA256 (RFC
// 5869) from the attempt's key and the image's random salt, each for its own use, so that
// no two images share a stream. The last tag is the MAC of the image, which the submit
// side keeps in its journal: an older image of the same task does not pass for a newer
// one, and no other image of it passes either, not even one that was made by somebody
// with the key. (The tag of an authenticating cipher such as AES-GCM would not say that:
// who has the key finds other bytes for it.)
//
// Version 1 has no salt; nothing in it is encrypted, and the key of the tags is the
// attempt's. It is read and not written.
//
// The data are zstd of a tar with flat names: criu/NAME, io/NAME, and scratch.tar.
package image
