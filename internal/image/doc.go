// Package image makes EROFS files of container images and of directories.
//
// A user's image comes as layers: tar archives that anybody may have written. The kernel
// mounts file systems as root, and its drivers are not meant for the file systems of
// others. So the layers are read here, in a process without rights, into a tree; the file
// system is one that package erofs wrote from it. No path of a layer ever reaches the
// file system of the machine.
//
// Equal layers make equal files, so what many users name is stored once.
package image
