package userfiles

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// SendOptions configures the sender of a transfer.
type SendOptions struct {
	SendHoles bool // the receiver accepts holes: they are left out
	MayGrow   bool // a file may have grown since it was listed: only its listed size is sent

	Cache ReceiverCache // nil: the receiver has none
}

// MinCachedBytes is the size of the smallest file that a receiver caches. A smaller one
// travels as fast as the question for it.
const MinCachedBytes = 1 << 20

// ReceiverCache is what a sender knows of the contents that a receiver has. A version is
// TransferEntry.Version.
type ReceiverCache interface {
	// Find returns the SHA-256 of the transfer of a version that the receiver has. If it
	// has none, cacheable says whether it should have it from now on.
	Find(version string) (sum []byte, cacheable bool)
	// Sent notes that a version was sent.
	Sent(version string, sum []byte)
}

// SendEntries sends the entries in order. A file is sent as a chunk with its entry,
// chunks of data, and one with the SHA-256 of the data. A file that cannot be read, or
// has not as many bytes as were listed, ends the transfer with roost.NoInput. An entry
// without a Source is read below base.
func SendEntries(ctx context.Context, send func(*wire.FileChunk) error, agent *Agent, base string,
	entries []TransferEntry, opts SendOptions) error {
	for _, e := range entries {
		if err := sendEntry(ctx, send, agent, base, e, opts); err != nil {
			return err
		}
	}
	return nil
}

// WireEntry returns an entry in its wire form.
func WireEntry(e TransferEntry) *wire.FileEntry {
	return &wire.FileEntry{Name: e.Name, Size: e.Size, Stored: &e.Stored, Mode: uint32(e.Mode.Perm()), Dir: e.Dir}
}

// Totals returns the totals of a transfer of the entries.
func Totals(entries []TransferEntry) *wire.TransferTotals {
	t := &wire.TransferTotals{Files: uint64(len(entries))}
	for _, e := range entries {
		t.Bytes += e.Size
	}
	return t
}

func sendEntry(ctx context.Context, send func(*wire.FileChunk) error, agent *Agent, base string, e TransferEntry,
	opts SendOptions) error {
	if e.Dir {
		return send(&wire.FileChunk{Entry: WireEntry(e), Eof: true})
	}
	source := e.Source
	if source == "" {
		source = e.Name
	}
	r, err := agent.open(ctx, agentRequest{Op: opOpen, Base: base, Name: source, Holes: opts.SendHoles})
	if err != nil {
		return err
	}
	defer r.Close()
	if now := r.Entry().Size; now < e.Size || now > e.Size && !opts.MayGrow {
		return changedError(e, base, now)
	}
	version, first := "", &wire.FileChunk{Entry: WireEntry(e)}
	if opts.Cache != nil && e.Size >= MinCachedBytes && r.Entry().Size == e.Size {
		version = r.Entry().Version
	}
	if version != "" {
		if first.Sha256, first.Cacheable = opts.Cache.Find(version); first.Sha256 != nil {
			first.Cached = true
			return send(first)
		}
	}
	if err := send(first); err != nil {
		return err
	}
	sum := newTransferSum()
	for sent, stored := int64(0), int64(0); ; {
		hole, data, err := r.readChunk()
		if err != nil {
			return err
		}
		if opts.MayGrow {
			hole = min(hole, e.Size-sent)
			data = data[:min(int64(len(data)), e.Size-sent-hole)]
		}
		sent += hole + int64(len(data))
		if stored += int64(len(data)); stored > maxData(e.Stored) && opts.SendHoles && !opts.MayGrow {
			return fmt.Errorf("%w, of which %v took room", changedError(e, base, sent), roost.Bytes(e.Stored))
		}
		if ended := hole == 0 && len(data) == 0; sent > e.Size || ended && sent < e.Size {
			return changedError(e, base, sent)
		} else if ended {
			last := &wire.FileChunk{Eof: true, Sha256: sum.Sum(nil)}
			if version != "" {
				opts.Cache.Sent(version, last.Sha256)
			}
			return send(last)
		}
		sum.add(hole, data)
		if err := send(&wire.FileChunk{Hole: hole, Data: data}); err != nil {
			return err
		}
	}
}

// changedError returns the error for a file that has become shorter. A file below base is
// named relative to it, because the recipient of the error knows no other name.
func changedError(e TransferEntry, base string, now int64) error {
	name := e.Source
	if rel, err := filepath.Rel(base, name); name == "" || err == nil && filepath.IsLocal(rel) {
		name = e.Name
	}
	return fmt.Errorf("%s: %w: it changed while it was sent: it had %d bytes, and now %d", name, roost.NoInput,
		e.Size, now)
}

// transferSum computes the digest of one file during its transfer.
type transferSum struct{ hash.Hash }

func newTransferSum() transferSum { return transferSum{sha256.New()} }

// add adds a chunk. Of a hole only its length counts.
func (s transferSum) add(hole int64, data []byte) {
	if hole > 0 {
		s.Write(binary.BigEndian.AppendUint64(nil, uint64(hole)))
	}
	s.Write(data)
}

// ReceiveEntries receives files below base until recv returns io.EOF, if they are exactly
// what the manifest allows. Otherwise, and when ctx ends, nothing remains of them. What
// is not in the manifest, is out of order, ends within a file, or has a wrong digest is a
// *MismatchError: the sender's fault. A file that cannot be written is roost.NoOutput.
func ReceiveEntries(ctx context.Context, recv func() (*wire.FileChunk, error), agent *Agent, base string,
	m *TransferManifest) (files int, bytes int64, err error) {
	r, err := receiveEntries(ctx, recv, agent, base, m)
	if err != nil {
		return 0, 0, err
	}
	defer r.stage.Close()
	return r.check.files, r.check.bytes, r.stage.Commit(ctx)
}

// ReceiveStaged is ReceiveEntries without its last step: the files get their names when
// the caller commits the set.
func ReceiveStaged(ctx context.Context, recv func() (*wire.FileChunk, error), agent *Agent, base string,
	m *TransferManifest) (*RemoteStage, error) {
	r, err := receiveEntries(ctx, recv, agent, base, m)
	if err != nil {
		return nil, err
	}
	return r.stage, nil
}

// receiveEntries receives a transfer that must fulfil the manifest.
func receiveEntries(ctx context.Context, recv func() (*wire.FileChunk, error), agent *Agent, base string,
	m *TransferManifest) (r *transferReceiver, err error) {
	stage, err := agent.BeginStage(ctx, base)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			stage.Close()
		}
	}()
	r = &transferReceiver{nextMessage: recv, stage: stage, check: m.check()}
	for {
		chunk, err := recv()
		if errors.Is(err, io.EOF) {
			return r, r.check.endTransfer()
		}
		if err != nil {
			return nil, err
		}
		if chunk.GetEntry() == nil && len(chunk.GetData()) == 0 && !chunk.GetEof() {
			continue // a first chunk that only says whose files follow
		}
		if err := r.receiveEntry(ctx, chunk); err != nil {
			return nil, err
		}
	}
}

// transferReceiver is the state of receiving one transfer.
type transferReceiver struct {
	nextMessage func() (*wire.FileChunk, error)
	stage       *RemoteStage
	check       *manifestCheck
}

// receiveEntry receives a file or directory.
func (r *transferReceiver) receiveEntry(ctx context.Context, first *wire.FileChunk) error {
	e := first.GetEntry()
	if e == nil {
		return &MismatchError{Cause: "data came before the name of a file"}
	}
	if err := r.check.beginEntry(e); err != nil {
		return err
	}
	mode := fs.FileMode(e.GetMode()).Perm()
	if e.GetDir() {
		return r.stage.Mkdir(ctx, e.GetName(), mode)
	}
	w, err := r.stage.Create(ctx, e.GetName(), CreateOptions{Mode: mode | 0o600})
	if err != nil {
		return err
	}
	defer w.Close()
	if err := r.receiveContent(w, first); err != nil {
		return err
	}
	return w.Commit()
}

// receiveContent writes the data of one file, and checks its digest.
func (r *transferReceiver) receiveContent(w *AgentWriter, chunk *wire.FileChunk) (err error) {
	sum, name := newTransferSum(), chunk.GetEntry().GetName()
	for first := true; ; first = false {
		if !first {
			chunk, err = r.nextMessage()
			if errors.Is(err, io.EOF) {
				return &MismatchError{name, "the transfer ended in the middle of it"}
			}
			if err != nil {
				return err
			}
			if chunk.GetEntry() != nil {
				return &MismatchError{name, fmt.Sprintf("%.200q began before its end", chunk.GetEntry().GetName())}
			}
		}
		more, err := r.check.addChunk(sum, chunk)
		if err != nil {
			return err
		}
		if hole := chunk.GetHole(); hole > 0 {
			if err := w.skipHole(hole); err != nil {
				return err
			}
		}
		if _, err := w.Write(chunk.GetData()); err != nil || !more {
			return err
		}
	}
}
