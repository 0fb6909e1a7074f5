package image

import (
	"fmt"
	"io"

	"github.com/roost-batch/roost"
)

// Limits bound what an image may have, so that a small hostile one cannot fill a disk.
type Limits struct {
	Entries   int   // files of all layers
	Bytes     int64 // contents of all layers, uncompressed
	Ratio     int64 // uncompressed bytes for each compressed one, beyond RatioFrom
	RatioFrom int64 // uncompressed bytes for which no ratio holds
	Depth     int   // directories above a file
	Layers    int
}

// DefaultLimits are the limits of images.
func DefaultLimits() Limits {
	return Limits{Entries: 10_000_000, Bytes: 64 << 30, Ratio: 1000, RatioFrom: 256 << 20, Depth: 256, Layers: 512}
}

// byteCounter counts what is read.
type byteCounter struct {
	reader io.Reader
	count  int64
}

func (c *byteCounter) Read(b []byte) (int, error) {
	n, err := c.reader.Read(b)
	c.count += int64(n)
	return n, err
}

// expansionReader reads what grew out of compressed bytes, and ends when it grows too
// much.
type expansionReader struct {
	reader     io.Reader
	compressed *byteCounter
	limits     Limits
	total      *int64 // of all layers
	count      int64
}

func (e *expansionReader) Read(b []byte) (int, error) {
	n, err := e.reader.Read(b)
	e.count += int64(n)
	*e.total += int64(n)
	switch {
	case *e.total > e.limits.Bytes:
		return n, fmt.Errorf("%w: the image has more than %v", roost.Exhausted, roost.Bytes(e.limits.Bytes))
	case e.count > e.limits.RatioFrom && e.count/e.limits.Ratio > e.compressed.count:
		return n, fmt.Errorf("%w: %v bytes became %v bytes, and more than %d for one is taken for an attack",
			roost.Exhausted, e.compressed.count, e.count, e.limits.Ratio)
	}
	return n, err
}
