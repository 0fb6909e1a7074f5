package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
)

// Incoming is a blob whose chunks are being received. Put may be called concurrently.
type Incoming struct {
	directory *Directory
	manifest  Manifest
	digest    Digest
	owner     string
	file      *os.File // nil: the blob was there already
	room      *reservation

	mu       sync.Mutex
	present  []bool // by chunk
	missing  int
	finished bool
	closed   bool
	claimed  []bool // chunks that a Put is writing
}

// Receive begins or continues to receive a blob. While another Incoming of the digest is
// open it waits, so a blob arrives once however many want it. If the blob is there,
// nothing is missing. The caller closes the Incoming.
func (d *Directory) Receive(ctx context.Context, m Manifest, owner string) (*Incoming, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	digest := m.Digest()
	if err := d.enterReceive(ctx, digest); err != nil {
		return nil, fmt.Errorf("blob %s: %w", digest.Short(), err)
	}
	in := &Incoming{directory: d, manifest: m, digest: digest, owner: owner}
	there, err := d.own(digest, owner)
	switch {
	case err != nil:
	case there:
		in.finished = true
	default:
		in.present, in.claimed = make([]bool, len(m.Chunks)), make([]bool, len(m.Chunks))
		if err = in.open(); err == nil {
			d.mu.Lock()
			d.incoming[digest] = in
			d.mu.Unlock()
		}
	}
	if err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

// enterReceive waits until no other Incoming has the digest, and takes it.
func (d *Directory) enterReceive(ctx context.Context, digest Digest) error {
	for {
		if d.tryEnterReceive(digest) {
			return nil
		}
		d.mu.Lock()
		other := d.receiving[digest]
		d.mu.Unlock()
		if other == nil {
			continue
		}
		select {
		case <-other:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryEnterReceive takes a digest that no other Incoming has.
func (d *Directory) tryEnterReceive(digest Digest) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.receiving[digest] != nil {
		return false
	}
	d.receiving[digest] = make(chan struct{})
	return true
}

// leaveReceive lets the next one receive a digest.
func (d *Directory) leaveReceive(digest Digest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.receiving[digest])
	delete(d.receiving, digest)
	delete(d.incoming, digest)
}

func (in *Incoming) path(suffix string) string {
	return in.directory.join(incomingDir, in.digest.hex()+suffix)
}

// open opens the file of the chunks, and finds those that came before a crash.
func (in *Incoming) open() (err error) {
	d := in.directory
	if in.file, err = os.OpenFile(in.path(incomingSuffix), os.O_RDWR|os.O_CREATE, blobMode); err != nil {
		return fmt.Errorf("blob %s: %w", in.digest.Short(), d.diskError(err))
	}
	have, err := in.findChunks()
	if err != nil {
		return fmt.Errorf("blob %s: %w", in.digest.Short(), err)
	}
	if in.room, err = d.reserve(in.owner, in.manifest.Size); err != nil {
		return err
	}
	in.room.written(have)
	if err := in.file.Truncate(in.manifest.Size); err != nil {
		return fmt.Errorf("blob %s: %w", in.digest.Short(), d.diskError(err))
	}
	if err := atomicfile.Write(in.path(manifestSuffix), in.manifest.Encode(), blobMode); err != nil {
		return fmt.Errorf("blob %s: %w", in.digest.Short(), d.diskError(err))
	}
	return nil
}

// seekData is SEEK_DATA of lseek(2): the next bytes that are not in a hole.
const seekData = 3

// findChunks compares what is in the file with the manifest. It returns the bytes of the
// chunks that are right.
func (in *Incoming) findChunks() (have int64, err error) {
	info, err := in.file.Stat()
	if err != nil {
		return 0, err
	}
	in.missing = len(in.present)
	buffer := make([]byte, min(ChunkBytes, info.Size()))
	for i := range in.present {
		at, n := int64(i)*ChunkBytes, in.manifest.ChunkSize(i)
		if at+int64(n) > info.Size() {
			break
		}
		if data, err := syscall.Seek(int(in.file.Fd()), at, seekData); errors.Is(err, syscall.ENXIO) {
			break
		} else if err == nil && data >= at+int64(n) {
			continue // a hole
		}
		if _, err := in.file.ReadAt(buffer[:n], at); err != nil {
			if errors.Is(err, io.EOF) {
				break
			}
			continue // a bad sector: the chunk is written anew
		}
		if sha256.Sum256(buffer[:n]) == in.manifest.Chunks[i] {
			in.present[i] = true
			in.missing--
			have += int64(n)
		}
	}
	return have, nil
}

// Missing returns the chunks that have not come yet.
func (in *Incoming) Missing() (chunks []int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for i, ok := range in.present {
		if !ok && !in.finished {
			chunks = append(chunks, i)
		}
	}
	return chunks
}

// Put stores chunk i. Other bytes than the manifest has are roost.Invalid, and change
// nothing: whoever sent them is wrong or lies. A chunk that is there is accepted.
func (in *Incoming) Put(i int, data []byte) error {
	if i < 0 || i >= len(in.manifest.Chunks) {
		return fmt.Errorf("blob %s: %w: it has %d chunks, and no chunk %d", in.digest.Short(), roost.Invalid,
			len(in.manifest.Chunks), i)
	}
	if len(data) != in.manifest.ChunkSize(i) || sha256.Sum256(data) != in.manifest.Chunks[i] {
		return fmt.Errorf("blob %s: chunk %d: %w: its bytes are not those of its digest", in.digest.Short(), i,
			roost.Invalid)
	}
	in.mu.Lock()
	if in.closed {
		in.mu.Unlock()
		return fmt.Errorf("blob %s: %w: nobody receives it any more", in.digest.Short(), roost.Conflict)
	}
	if in.finished || in.present[i] || in.claimed[i] {
		in.mu.Unlock()
		return nil
	}
	in.claimed[i] = true
	in.mu.Unlock()
	_, err := in.file.WriteAt(data, int64(i)*ChunkBytes)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.claimed[i] = false
	if err != nil {
		return fmt.Errorf("blob %s: chunk %d: %w", in.digest.Short(), i, in.directory.diskError(err))
	}
	in.present[i] = true
	in.missing--
	in.room.written(int64(len(data)))
	return nil
}

// readChunk reads a chunk that has come.
func (in *Incoming) readChunk(i int, buffer []byte) ([]byte, error) {
	in.mu.Lock()
	here := !in.closed && !in.finished && i >= 0 && i < len(in.present) && in.present[i]
	in.mu.Unlock()
	if !here {
		return nil, fmt.Errorf("blob %s: chunk %d: %w: it has not come yet", in.digest.Short(), i, roost.NotFound)
	}
	return (&Blob{in.manifest, in.digest, in.file, in.directory, false}).ReadChunk(i, buffer)
}

// Finish makes the blob whole, and returns its file. Missing chunks are roost.Conflict.
// When it returns, the blob is on the disk.
func (in *Incoming) Finish() (path string, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.finished {
		if in.missing > 0 {
			return "", fmt.Errorf("blob %s: %w: %d of %d chunks are missing", in.digest.Short(), roost.Conflict,
				in.missing, len(in.present))
		}
		if in.closed {
			return "", fmt.Errorf("blob %s: %w: nobody receives it any more", in.digest.Short(), roost.Conflict)
		}
		if err := in.file.Sync(); err != nil {
			return "", fmt.Errorf("blob %s: %w", in.digest.Short(), in.directory.diskError(err))
		}
		if err := in.directory.install(in.path(incomingSuffix), in.manifest, in.owner); err != nil {
			return "", err
		}
		in.finished = true
		os.Remove(in.path(manifestSuffix))
		os.Remove(in.path(incomingSuffix)) // if the blob came another way
	}
	return in.directory.blobPath(in.digest), nil
}

// Close ends the receiving. The chunks that have come remain for the next Receive.
func (in *Incoming) Close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return nil
	}
	in.closed = true
	var err error
	if in.file != nil {
		err = in.file.Close()
	}
	if in.room != nil {
		in.room.end()
	}
	in.directory.leaveReceive(in.digest)
	return err
}
