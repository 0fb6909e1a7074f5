package transfer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/object"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// A machine moves objects by itself, and asks this side for one address after another.
// So an address need be good for a request only, however long a task waits in the queue
// or a file takes, and a machine can ask for nothing but the moves of its own attempt,
// which it names by number.

// addressLifetime is how long a presigned address is good. It bounds the begin of a
// request only.
const addressLifetime = 15 * time.Minute

// objectSilence is how long a machine may say nothing of objects that it moves. It
// reports every few seconds.
const objectSilence = 2 * time.Minute

// movesAtOnce is how many moves go in one message.
const movesAtOnce = 100

// objectMove is one object that a machine moves.
type objectMove struct {
	*wire.ObjectMove
	url     jobad.ObjectURL
	account *objectAccount
	upload  string // id of the upload, of an output

	moved *wire.ObjectMoved // what the machine has said at the end
}

// address returns an address for a request of a move.
func (m *objectMove) address(want *wire.ObjectWant) (*wire.ObjectAddress, error) {
	at := &wire.ObjectAddress{Move: want.GetMove(), Part: want.GetPart(), ValidNs: int64(addressLifetime),
		Plain: m.account.store.Plain}
	var err error
	if m.GetUpload() {
		if n := int64(want.GetPart()); n < 1 || n > partCount(m.GetEntry().GetSize(), m.GetPartSize()) {
			return nil, fmt.Errorf("%w: an address for part %d of %s was asked for", roost.Invalid, n, m.url)
		}
		at.Url, err = m.account.PresignPart(m.url.Bucket, m.url.Key, m.upload, int(want.GetPart()), addressLifetime)
	} else {
		at.Url, err = m.account.PresignGet(m.url.Bucket, m.url.Key, addressLifetime)
	}
	return at, err
}

// errMissingObjects says that a machine lacks contents that it was said to have.
var errMissingObjects = errors.New("its input cache lacks objects")

// objectSession has a machine move the objects of an attempt.
type objectSession struct {
	transfers *FileTransfers
	node      *StartdNode
	attempt   roost.AttemptID
	kind      string // of the transfer, as users see it
	moves     []objectMove
}

// bytes returns the sum of the sizes of all files.
func (s *objectSession) bytes() (sum int64) {
	for _, m := range s.moves {
		sum += m.GetEntry().GetSize()
	}
	return sum
}

// run moves all objects. The error is roost.Unavailable if another try may do.
func (s *objectSession) run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	stream, err := s.node.Client.MoveObjects(ctx)
	if err != nil {
		return rpc.FromStatus(err)
	}
	progress, end := s.transfers.progress.begin(s.attempt, s.kind, s.bytes())
	defer end()
	first := &wire.ObjectOrder{Schedd: s.transfers.host, Attempt: codec.AttemptRef(s.attempt),
		Totals: &wire.TransferTotals{Files: uint64(len(s.moves)), Bytes: s.bytes()}}
	for at := 0; ; at += movesAtOnce {
		next := min(at+movesAtOnce, len(s.moves))
		for _, m := range s.moves[at:next] {
			first.Moves = append(first.Moves, m.ObjectMove)
		}
		first.Complete = next == len(s.moves)
		if err := stream.Send(first); err != nil {
			break // Recv says why
		}
		if first.GetComplete() {
			break
		}
		first = &wire.ObjectOrder{}
	}
	silence := time.AfterFunc(objectSilence, func() { cancel(stalledError{}) })
	defer silence.Stop()
	for {
		report, err := stream.Recv()
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return rpc.FromStatus(err)
		}
		silence.Reset(objectSilence)
		progress.note(report.GetBytes(), report.GetWaits())
		if done, err := s.onReport(stream.Send, report); done || err != nil {
			return err
		}
	}
}

// onReport takes in what the machine says, and reports whether that was the last.
func (s *objectSession) onReport(send func(*wire.ObjectOrder) error, report *wire.ObjectReport) (done bool, err error) {
	switch {
	case report.GetMissing():
		return true, errMissingObjects
	case report.GetFailure() != nil:
		f := report.GetFailure()
		m, err := s.move(f.GetMove())
		if err != nil {
			return true, err
		}
		return true, m.account.explain(m.url, &object.StoreError{Status: int(f.GetStatus()),
			Code: object.ShortText(f.GetCode()),
			Text: object.ShortText(f.GetText() + ", as node " + s.node.Name + " says")})
	case report.GetWant() != nil:
		m, err := s.move(report.GetWant().GetMove())
		if err != nil {
			return true, err
		}
		at, err := m.address(report.GetWant())
		if err != nil {
			return true, err
		}
		if err := send(&wire.ObjectOrder{Address: at}); err != nil {
			return false, nil // Recv says why
		}
	case report.GetMoved() != nil:
		m, err := s.move(report.GetMoved().GetMove())
		if err != nil {
			return true, err
		}
		m.moved = report.GetMoved()
	case report.GetComplete():
		for _, m := range s.moves {
			if m.moved == nil && !m.GetEntry().GetDir() {
				return true, fmt.Errorf("%w: node %s has not moved %s", roost.Unavailable, s.node.Name, m.url)
			}
		}
		return true, nil
	}
	return false, nil
}

// move returns the move with a number that the machine has said.
func (s *objectSession) move(number uint32) (*objectMove, error) {
	if int64(number) >= int64(len(s.moves)) {
		return nil, &userfiles.MismatchError{Cause: fmt.Sprintf("object %d of %d was asked for", number, len(s.moves))}
	}
	return &s.moves[number], nil
}

// isReplaced reports whether an object is no longer the one that was found.
func isReplaced(err error) bool {
	answer, ok := errors.AsType[*object.StoreError](err)
	return ok && answer.Status == http.StatusPreconditionFailed
}

// Sizes of the parts of an upload.
const (
	minPartSize = 64 << 20
	maxParts    = 9_000 // S3 has 10,000
)

// partSize returns the size of all parts of a file but the last.
func partSize(size int64) int64 {
	const step = 1 << 20
	return max(minPartSize, (size/maxParts/step+1)*step)
}

// partCount returns how many parts a file has. An empty file has one.
func partCount(size, part int64) int64 {
	if size <= 0 || part <= 0 {
		return 1
	}
	return (size + part - 1) / part
}
