package userfiles

import (
	"bufio"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// A set of files can be stored as one file: the messages of a transfer of them, each
// after its length. The first message has the totals alone. So what is stored by its
// digest can be sent to a machine, or received below a directory, as if it came from
// where the files were.

// WriteStored returns a function that writes the messages of a transfer to a stored set.
func WriteStored(w io.Writer, totals *wire.TransferTotals) (send func(*wire.FileChunk) error, err error) {
	send = func(m *wire.FileChunk) error { return wire.WriteFileChunk(w, m) }
	return send, send(&wire.FileChunk{Totals: totals})
}

// ReadStored returns the totals of a stored set, and a function that returns the messages
// after them. What is no message is roost.Invalid.
func ReadStored(r io.Reader) (totals *wire.TransferTotals, recv func() (*wire.FileChunk, error), err error) {
	from := bufio.NewReaderSize(r, 64<<10)
	recv = func() (*wire.FileChunk, error) {
		m, err := wire.ReadFileChunk(from)
		var kind roost.ErrorKind
		switch {
		case err == nil:
			return &wire.FileChunk{Entry: m.GetEntry(), Data: m.GetData(), Eof: m.GetEof(), Sha256: m.GetSha256(),
				Hole: m.GetHole(), Totals: m.GetTotals()}, nil
		case errors.Is(err, io.EOF) || errors.As(err, &kind):
			return nil, err
		}
		return nil, fmt.Errorf("stored files: %w: %w", roost.Invalid, err)
	}
	first, err := recv()
	if errors.Is(err, io.EOF) || err == nil && first.GetTotals() == nil {
		return nil, nil, fmt.Errorf("stored files: %w: they do not begin with their number", roost.Invalid)
	}
	return first.GetTotals(), recv, err
}

// CopyEntries passes the messages of a transfer on until recv returns io.EOF, if they are
// exactly what the manifest allows. Errors are those of ReceiveEntries, and those of
// pass.
func CopyEntries(recv func() (*wire.FileChunk, error), m *TransferManifest, pass func(*wire.FileChunk) error) error {
	check := m.check()
	var sum transferSum
	open := false
	for {
		chunk, err := recv()
		if errors.Is(err, io.EOF) {
			if open {
				return &MismatchError{check.current.GetName(), "the transfer ended in the middle of it"}
			}
			return check.endTransfer()
		}
		if err != nil {
			return err
		}
		switch e := chunk.GetEntry(); {
		case e == nil && !open && len(chunk.GetData()) == 0 && !chunk.GetEof():
			continue // a first chunk that only says whose files follow
		case e == nil && !open:
			return &MismatchError{Cause: "data came before the name of a file"}
		case e != nil && open:
			return &MismatchError{check.current.GetName(), fmt.Sprintf("%.200q began before its end", e.GetName())}
		case e != nil:
			if err := check.beginEntry(e); err != nil {
				return err
			}
			sum, open = newTransferSum(), !e.GetDir()
		}
		if open {
			if open, err = check.addChunk(sum, chunk); err != nil {
				return err
			}
		}
		if err := pass(chunk); err != nil {
			return err
		}
	}
}

// addChunk checks a message of the present file, and reports whether more of it follow.
func (c *manifestCheck) addChunk(sum transferSum, chunk *wire.FileChunk) (more bool, err error) {
	if err := c.addPiece(chunk.GetHole(), len(chunk.GetData())); err != nil {
		return false, err
	}
	sum.add(chunk.GetHole(), chunk.GetData())
	if !chunk.GetEof() {
		return true, nil
	}
	if subtle.ConstantTimeCompare(sum.Sum(nil), chunk.GetSha256()) != 1 {
		return false, &MismatchError{c.current.GetName(), "what came of it does not have its digest"}
	}
	return false, c.endFile()
}
