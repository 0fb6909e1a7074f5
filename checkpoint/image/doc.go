// Package image is the file of a checkpoint: what CRIU wrote, a snapshot of the scratch directory and the captured output, in one stream
// that nobody without the job's key can make or change.
//
// A restored process runs whatever its image says, with privileges of the program that restores it in between; so not a byte of an image
// may be believed before it is known to come from a node of the pool. A digest at the end would come too late for the decompressor and the
// unpacker, which would have read it all by then. So the stream is cut into chunks, and each ends with the HMAC-SHA256 of everything
// up to there, keyed with the job's key:
//
//	"RoostCkp" version(2) length(4) header tag(32)
//	length(4) data tag(32)        any number of times, length <= 1 MiB
//	length(4)=0 tag(32)           the end
//
// Numbers are little endian. A tag covers all bytes before it but the other tags. The last one is the MAC of the image, which the submit
// side keeps in its journal: an older image of the same job does not pass for a newer one. The data are zstd of a tar with flat
// names: criu/NAME, io/NAME, and scratch.tar.
package image
