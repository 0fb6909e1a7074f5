package image

import (
	"archive/tar"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/roost-batch/roost"
)

// Reader reads an image as a stream. All data that it returns are authenticated. The
// image is known to be complete only when Next returns io.EOF.
type Reader struct {
	header   Header
	expected ExpectedImage
	from     io.Reader
	opener   *chunkOpener
	zstd     *zstd.Decoder
	tar      *tar.Reader
	raw      int64
	entries  int
	err      error
}

// NewReader begins to read an image. It checks that the header is authentic and as
// expected. Errors are roost.Invalid for a bad image and roost.NoInput if r fails.
func NewReader(r io.Reader, key []byte, want ExpectedImage) (*Reader, error) {
	open, err := newOpener(r, key)
	if err != nil {
		return nil, err
	}
	i := &Reader{expected: want, from: r, opener: open}
	if err := json.Unmarshal(open.header, &i.header); err != nil {
		return nil, badImage("header: %v", err)
	}
	if err := i.header.check(); err != nil {
		return nil, err
	}
	if err := want.mismatch(&i.header); err != nil {
		return nil, err
	}
	i.zstd, err = zstd.NewReader(open, zstd.WithDecoderConcurrency(compressionThreads()),
		zstd.WithDecoderMaxWindow(windowSize), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, badImage("%v", err)
	}
	// The tar adds padding and headers to the entries.
	i.tar = tar.NewReader(&maxBytesReader{i.zstd, i.header.Raw + int64(i.header.Entries)*4096 + 64<<10})
	return i, nil
}

// Header returns the header of the image.
func (i *Reader) Header() Header { return i.header }

// Next advances to the next entry, whose bytes Read returns. io.EOF means that there is
// none, and that the image is complete and the expected one.
func (i *Reader) Next() (name string, size int64, err error) {
	if i.err != nil {
		return "", 0, i.err
	}
	name, size, err = i.nextEntry()
	i.err = err
	return name, size, err
}

func (i *Reader) nextEntry() (string, int64, error) {
	h, err := i.tar.Next()
	if errors.Is(err, io.EOF) {
		return "", 0, i.verifyEnd()
	}
	if err != nil {
		return "", 0, streamError(err)
	}
	if err := checkEntryName(h.Name); err != nil {
		return "", 0, err
	}
	if h.Typeflag != tar.TypeReg || h.Size < 0 {
		return "", 0, badImage("%s is not a plain file", h.Name)
	}
	i.entries++
	i.raw += h.Size
	if i.entries > i.header.Entries || i.raw > i.header.Raw {
		return "", 0, badImage("there is more in it than its header says")
	}
	return h.Name, h.Size, nil
}

// Read reads the present entry.
func (i *Reader) Read(p []byte) (int, error) {
	n, err := i.tar.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = streamError(err)
	}
	return n, err
}

// streamError returns errors of the underlying reader as they are, and makes all others a
// bad image.
func streamError(err error) error {
	if errors.Is(err, roost.Invalid) || errors.Is(err, roost.NoInput) {
		return err
	}
	return badImage("%v", err)
}

// verifyEnd reads what follows the last entry, and compares the MAC.
func (i *Reader) verifyEnd() error {
	if _, err := io.Copy(io.Discard, &maxBytesReader{i.zstd, 64 << 10}); err != nil {
		return streamError(err)
	}
	if !i.opener.ended {
		if _, err := i.opener.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			return streamError(fmt.Errorf("there is data after its end: %w", err))
		}
	}
	switch n, err := i.from.Read(make([]byte, 1)); {
	case n > 0:
		return badImage("there is data after its end")
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("checkpoint image: %w: %w", roost.NoInput, err)
	}
	if i.entries != i.header.Entries || i.raw != i.header.Raw {
		return badImage("there is less in it than its header says")
	}
	if i.expected.MAC != nil && !hmac.Equal(i.expected.MAC, i.opener.tag) {
		return badImage("it is an image of this task, but not the one that was stored")
	}
	return io.EOF
}

// MAC returns the MAC of the whole image, after Next has returned io.EOF.
func (i *Reader) MAC() []byte { return i.opener.tag }

// Close frees the reader's memory.
func (i *Reader) Close() { i.zstd.Close() }

// maxBytesReader fails after a number of bytes, where io.LimitReader would end.
type maxBytesReader struct {
	io.Reader
	remaining int64
}

func (b *maxBytesReader) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.remaining -= int64(n); b.remaining < 0 {
		return 0, badImage("there is more in it than its header says")
	}
	return n, err
}
