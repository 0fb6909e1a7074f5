package files

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// Send sends the entries in order: for each file a chunk with its entry, chunks of data, and one with the SHA-256 of what was sent. A file
// that cannot be read ends the transfer with an error, roost.NoInput. An entry without a Source is read below base.
func Send(ctx context.Context, send func(*wire.FileChunk) error, agent *Agent, base string, entries []Entry) error {
	for _, e := range entries {
		if err := sendEntry(ctx, send, agent, base, e); err != nil {
			return err
		}
	}
	return nil
}

// WireEntry is an entry as the protocol names it.
func WireEntry(e Entry) *wire.FileEntry {
	return &wire.FileEntry{Name: e.Name, Size: e.Size, Mode: uint32(e.Mode.Perm()), Dir: e.Dir}
}

func sendEntry(ctx context.Context, send func(*wire.FileChunk) error, agent *Agent, base string, e Entry) error {
	if e.Dir {
		return send(&wire.FileChunk{Entry: WireEntry(e), Eof: true})
	}
	source := e.Source
	if source == "" {
		source = e.Name
	}
	r, err := agent.Open(ctx, base, source, 0)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := send(&wire.FileChunk{Entry: WireEntry(e)}); err != nil {
		return err
	}
	sum := sha256.New()
	for {
		data, err := r.next()
		if err != nil {
			return err
		}
		if len(data) == 0 {
			return send(&wire.FileChunk{Eof: true, Sha256: sum.Sum(nil)})
		}
		sum.Write(data)
		if err := send(&wire.FileChunk{Data: data}); err != nil {
			return err
		}
	}
}

// Receive puts files below base as they come, until recv gives io.EOF. A name that is not local, a chunk out of order, a stream that ends
// within a file, or bytes that do not have their digest end it with roost.Invalid; a file that cannot be written with roost.NoOutput. What
// was complete by then stays, and is counted.
func Receive(ctx context.Context, recv func() (*wire.FileChunk, error), agent *Agent, base string) (files int, bytes int64, err error) {
	for {
		chunk, err := recv()
		if errors.Is(err, io.EOF) {
			return files, bytes, nil
		}
		if err != nil {
			return files, bytes, err
		}
		if chunk.GetEntry() == nil && len(chunk.GetData()) == 0 && !chunk.GetEof() {
			continue // a first chunk that only says whose files follow
		}
		n, err := receiveEntry(ctx, chunk, recv, agent, base)
		if err != nil {
			return files, bytes, err
		}
		if files++; files > MaxEntries {
			return files, bytes, fmt.Errorf("%s: %w: more than %d files", base, roost.Exhausted, MaxEntries)
		}
		bytes += n
	}
}

func receiveEntry(ctx context.Context, first *wire.FileChunk, recv func() (*wire.FileChunk, error), agent *Agent, base string) (int64, error) {
	e := first.GetEntry()
	if e == nil {
		return 0, fmt.Errorf("%s: %w: data before a file's name", base, roost.Invalid)
	}
	if err := CheckName(e.GetName()); err != nil {
		return 0, err
	}
	mode := fs.FileMode(e.GetMode()).Perm()
	if e.GetDir() {
		return 0, agent.Mkdir(ctx, base, e.GetName(), mode)
	}
	w, err := agent.Create(ctx, base, e.GetName(), CreateOptions{Mode: mode | 0o600})
	if err != nil {
		return 0, err
	}
	defer w.Close()
	size, err := fill(w, sha256.New(), first, recv)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", filepath.Join(base, e.GetName()), err)
	}
	return size, w.Commit()
}

// fill writes the data of one file, and checks its digest.
func fill(w io.Writer, sum hash.Hash, chunk *wire.FileChunk, recv func() (*wire.FileChunk, error)) (size int64, err error) {
	for first := true; ; first = false {
		if !first {
			chunk, err = recv()
			if errors.Is(err, io.EOF) {
				return 0, fmt.Errorf("the stream ended after %d bytes of it: %w", size, roost.Invalid)
			}
			if err != nil {
				return 0, err
			}
			if chunk.GetEntry() != nil {
				return 0, fmt.Errorf("%q begins before its end: %w", chunk.GetEntry().GetName(), roost.Invalid)
			}
		}
		if n := len(chunk.GetData()); n > 0 {
			sum.Write(chunk.GetData())
			if _, err := w.Write(chunk.GetData()); err != nil {
				return 0, err
			}
			size += int64(n)
		}
		if chunk.GetEof() {
			if subtle.ConstantTimeCompare(sum.Sum(nil), chunk.GetSha256()) != 1 {
				return 0, fmt.Errorf("the digest of its %d bytes is wrong: %w", size, roost.Invalid)
			}
			return size, nil
		}
	}
}
