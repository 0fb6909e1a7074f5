package image

import (
	"archive/tar"
	"fmt"
	"io"
	"runtime"

	"github.com/klauspost/compress/zstd"

	"github.com/roost-batch/roost"
)

// WriteResult describes a finished image.
type WriteResult struct {
	Size int64  // bytes of the image
	Raw  int64  // bytes of its entries
	MAC  []byte // the last tag
}

// compressionThreads bounds the cores that compression takes from the tasks of a node.
func compressionThreads() int { return min(2, runtime.GOMAXPROCS(0)) }

// Writer writes an image as a stream.
type Writer struct {
	header  Header
	sealer  *chunkSealer
	zstd    *zstd.Encoder
	tar     *tar.Writer
	raw     int64
	entries int
}

// NewWriter starts an image on w. The header's Raw and Entries must be true: Close fails
// otherwise. The key has at least KeySize bytes.
func NewWriter(w io.Writer, h Header, key []byte) (*Writer, error) {
	text, err := h.encode()
	if err != nil {
		return nil, err
	}
	seal, err := newSealer(w, key, text)
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewWriter(seal, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(compressionThreads()),
		zstd.WithWindowSize(windowSize), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, err
	}
	return &Writer{header: h, sealer: seal, zstd: z, tar: tar.NewWriter(z)}, nil
}

// windowSize is the window of the compression in bytes, and so the memory that a reader
// needs.
const windowSize = 4 << 20

// Add adds an entry of size bytes, which are read from r. It is an error if there are
// fewer.
func (w *Writer) Add(name string, size int64, r io.Reader) error {
	if err := checkEntryName(name); err != nil {
		return err
	}
	w.entries++
	w.raw += size
	if w.entries > w.header.Entries || w.raw > w.header.Raw {
		return badImage("%s: there is more than the header says", name)
	}
	if err := w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600}); err != nil {
		return writeError(err)
	}
	if _, err := io.CopyN(w.tar, r, size); err != nil {
		return fmt.Errorf("checkpoint image: %s: %w: %w", name, roost.NoOutput, err)
	}
	return nil
}

func writeError(err error) error { return fmt.Errorf("checkpoint image: %w: %w", roost.NoOutput, err) }

// Close ends the image, which is incomplete without it. It does not close the underlying
// writer.
func (w *Writer) Close() (WriteResult, error) {
	if w.entries != w.header.Entries || w.raw != w.header.Raw {
		w.Abandon()
		return WriteResult{}, badImage("%d entries with %d bytes, and the header says %d and %d", w.entries, w.raw,
			w.header.Entries, w.header.Raw)
	}
	if err := w.tar.Close(); err != nil {
		w.Abandon()
		return WriteResult{}, writeError(err)
	}
	if err := w.zstd.Close(); err != nil {
		return WriteResult{}, writeError(err)
	}
	if err := w.sealer.Close(); err != nil {
		return WriteResult{}, writeError(err)
	}
	return WriteResult{Size: w.sealer.sent, Raw: w.raw, MAC: w.sealer.tag}, nil
}

// Abandon frees the writer's memory. The output so far is no image.
func (w *Writer) Abandon() {
	w.zstd.Reset(io.Discard)
	w.zstd.Close()
}
