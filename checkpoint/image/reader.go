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

// Reader reads an image as a stream. All that it gives out has been authenticated; that the image is whole is known when Next returns
// io.EOF, and not before.
type Reader struct {
	header  Header
	want    Want
	from    io.Reader
	open    *opener
	zstd    *zstd.Decoder
	tar     *tar.Reader
	raw     int64
	entries int
	err     error
}

// NewReader begins to read an image: its header has been authenticated and is as wanted. Errors are roost.Invalid for a bad image and
// roost.NoInput where r fails.
func NewReader(r io.Reader, key []byte, want Want) (*Reader, error) {
	open, err := newOpener(r, key)
	if err != nil {
		return nil, err
	}
	i := &Reader{want: want, from: r, open: open}
	if err := json.Unmarshal(open.header, &i.header); err != nil {
		return nil, bad("header: %v", err)
	}
	if err := i.header.check(); err != nil {
		return nil, err
	}
	if err := want.fits(&i.header); err != nil {
		return nil, err
	}
	i.zstd, err = zstd.NewReader(open, zstd.WithDecoderConcurrency(threads()), zstd.WithDecoderMaxWindow(windowSize), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, bad("%v", err)
	}
	// Padding and headers of the tar come on top of the entries themselves.
	i.tar = tar.NewReader(&bounded{i.zstd, i.header.Raw + int64(i.header.Entries)*4096 + 64<<10})
	return i, nil
}

// Header is what the image says of itself.
func (i *Reader) Header() Header { return i.header }

// Next goes to the next entry, whose bytes come from Read. io.EOF says that there is none, and that the image is whole and the wanted one.
func (i *Reader) Next() (name string, size int64, err error) {
	if i.err != nil {
		return "", 0, i.err
	}
	name, size, err = i.next()
	i.err = err
	return name, size, err
}

func (i *Reader) next() (string, int64, error) {
	h, err := i.tar.Next()
	if errors.Is(err, io.EOF) {
		return "", 0, i.finish()
	}
	if err != nil {
		return "", 0, broken(err)
	}
	if err := checkName(h.Name); err != nil {
		return "", 0, err
	}
	if h.Typeflag != tar.TypeReg || h.Size < 0 {
		return "", 0, bad("%s is not a plain file", h.Name)
	}
	i.entries++
	i.raw += h.Size
	if i.entries > i.header.Entries || i.raw > i.header.Raw {
		return "", 0, bad("there is more in it than its header says")
	}
	return h.Name, h.Size, nil
}

// Read reads the present entry.
func (i *Reader) Read(p []byte) (int, error) {
	n, err := i.tar.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = broken(err)
	}
	return n, err
}

// broken passes on why the reading of the stream failed, and makes all else a bad image.
func broken(err error) error {
	if errors.Is(err, roost.Invalid) || errors.Is(err, roost.NoInput) {
		return err
	}
	return bad("%v", err)
}

// finish reads what stands behind the last entry, and compares the whole.
func (i *Reader) finish() error {
	if _, err := io.Copy(io.Discard, &bounded{i.zstd, 64 << 10}); err != nil {
		return broken(err)
	}
	if !i.open.end {
		if _, err := i.open.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			return broken(fmt.Errorf("something stands behind its end: %w", err))
		}
	}
	switch n, err := i.from.Read(make([]byte, 1)); {
	case n > 0:
		return bad("something stands behind its end")
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("checkpoint image: %w: %w", roost.NoInput, err)
	}
	if i.entries != i.header.Entries || i.raw != i.header.Raw {
		return bad("there is less in it than its header says")
	}
	if i.want.MAC != nil && !hmac.Equal(i.want.MAC, i.open.tag) {
		return bad("it is an image of this task, but another than was kept")
	}
	return io.EOF
}

// MAC is that of the whole image, once Next has returned io.EOF.
func (i *Reader) MAC() []byte { return i.open.tag }

// Close frees what the reader holds.
func (i *Reader) Close() { i.zstd.Close() }

// bounded fails after so many bytes, where io.LimitReader would end.
type bounded struct {
	io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, bad("there is more in it than its header says")
	}
	return n, err
}
