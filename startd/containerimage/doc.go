// Package containerimage has the container images of a machine. Each is fetched once and
// mounted once, however many tasks run in it.
//
//	DIR/blobs         package internal/store: the images as files
//	DIR/mounts/HEX    where the image with that digest is mounted
//
// An image is a file system (EROFS) that Roost has made itself from what a user named,
// and nobody else's bytes are mounted: the kernel's code for file systems is not made to
// withstand them. That the file is the one whose digest the job names is verified when it
// comes, and again when an earlier process had fetched it.
//
// An image that tasks use stays. The others make room, those used longest ago first, when
// another does not fit.
package containerimage
