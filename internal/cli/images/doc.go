// Package images has the commands for container images: it builds what users name into
// the file systems that tasks run in, and puts them into the store of the pool.
package images
