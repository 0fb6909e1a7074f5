package streams

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/url"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/object"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/inputcache"
)

// Bounds of what a schedd may have moved at once, and how often it is told how far that
// is.
const (
	maxObjectMoves = 20_000
	maxMoveBytes   = 64 << 20 // of the orders
	reportEvery    = 2 * time.Second
)

// objectStream is the call of a schedd.
type objectStream = grpc.BidiStreamingServer[wire.ObjectOrder, wire.ObjectReport]

// MoveObjects moves objects between an object store and an attempt's scratch directory.
// Inputs come while the attempt waits for them, and outputs go when it has ended. The
// addresses come from the schedd, one for each request. Files are read and written with
// the rights of the attempt's user.
func (m *Server) MoveObjects(stream objectStream) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	a, err := m.acquireAttempt(stream.Context(), first.GetSchedd(), first.GetAttempt())
	if err != nil {
		return err
	}
	defer a.ReleaseFiles()
	ctx, cancel := a.FilesContext(stream.Context())
	defer cancel()
	o := &objectMover{server: m, attempt: a, stream: stream, addresses: make(chan *wire.ObjectAddress, 1)}
	if err := o.receiveMoves(first); err != nil {
		return err
	}
	go o.receiveAddresses(cancel)
	ended := make(chan struct{})
	reports := make(chan struct{})
	go func() {
		defer close(reports)
		o.reportProgress(ended)
	}()
	err = o.move(ctx, first)
	close(ended)
	<-reports
	failed, isAnswer := errors.AsType[*object.StoreError](err)
	switch {
	case err == nil:
		return o.report(&wire.ObjectReport{Complete: true, Bytes: o.bytes.Load()})
	case isAnswer:
		return o.report(&wire.ObjectReport{Failure: &wire.ObjectFailure{Move: o.current.Load(),
			Status: uint32(failed.Status), Code: failed.Code, Text: failed.Text}})
	case errors.Is(err, errMissingContents):
		return o.report(&wire.ObjectReport{Missing: true})
	}
	if wrong, ok := errors.AsType[*userfiles.MismatchError](err); ok {
		m.log.Warn("a schedd did not name the objects that were asked for", "schedd", a.ID().Task.Job.Host, "attempt",
			a.Label(), "file", wrong.Name, "error", wrong)
	}
	return err
}

// errMissingContents says that the input cache lacks contents that a schedd took for
// cached.
var errMissingContents = errors.New("contents are not cached")

// objectMover moves the objects of one call.
type objectMover struct {
	server    *Server
	attempt   *claim.Attempt
	stream    objectStream
	moves     []*wire.ObjectMove
	addresses chan *wire.ObjectAddress

	sending sync.Mutex
	bytes   atomic.Int64           // moved so far
	current atomic.Uint32          // index of the move that goes on
	host    atomic.Pointer[string] // of its last address
}

// receiveMoves receives what is to be moved.
func (o *objectMover) receiveMoves(order *wire.ObjectOrder) error {
	for size := 0; ; {
		for _, move := range order.GetMoves() {
			size += len(move.GetEntry().GetName()) + 100 + 100*len(move.GetParts())
			if move.GetUpload() != order.GetMoves()[0].GetUpload() {
				return fmt.Errorf("objects of attempt %v: %w: some come and some go", o.attempt.ID(), roost.Invalid)
			}
		}
		o.moves = append(o.moves, order.GetMoves()...)
		if len(o.moves) > maxObjectMoves || size > maxMoveBytes {
			return fmt.Errorf("objects of attempt %v: %w: there are more than %d", o.attempt.ID(), roost.Exhausted,
				maxObjectMoves)
		}
		if order.GetComplete() {
			return nil
		}
		var err error
		if order, err = o.stream.Recv(); err != nil {
			return err
		}
	}
}

// receiveAddresses receives the addresses that were asked for, until the call ends.
func (o *objectMover) receiveAddresses(cancel context.CancelFunc) {
	for {
		order, err := o.stream.Recv()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				cancel()
			}
			return
		}
		if at := order.GetAddress(); at != nil {
			select {
			case o.addresses <- at:
			case <-o.stream.Context().Done():
				return
			}
		}
	}
}

// report sends a report. Several goroutines call it.
func (o *objectMover) report(r *wire.ObjectReport) error {
	o.sending.Lock()
	defer o.sending.Unlock()
	return o.stream.Send(r)
}

// reportProgress says every few seconds how far the moves are.
func (o *objectMover) reportProgress(ended <-chan struct{}) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		r := &wire.ObjectReport{Bytes: o.bytes.Load()}
		if host := o.host.Load(); host != nil {
			r.Waits = o.server.objects.Waits(*host)
		}
		if o.report(r) != nil {
			return
		}
	}
}

// source returns where the addresses for a move come from.
func (o *objectMover) source(move int, part uint32) object.AddressSource {
	return func(ctx context.Context) (object.Address, error) {
		want := &wire.ObjectWant{Move: uint32(move), Part: part}
		if err := o.report(&wire.ObjectReport{Want: want, Bytes: o.bytes.Load()}); err != nil {
			return object.Address{}, err
		}
		for {
			select {
			case at := <-o.addresses:
				if at.GetMove() != want.GetMove() || at.GetPart() != part {
					continue // of a request that was given up
				}
				if u, err := url.Parse(at.GetUrl()); err == nil {
					o.host.Store(&u.Host)
				}
				return object.Address{URL: at.GetUrl(), Plain: at.GetPlain()}, nil
			case <-ctx.Done():
				return object.Address{}, context.Cause(ctx)
			}
		}
	}
}

// move moves all objects.
func (o *objectMover) move(ctx context.Context, first *wire.ObjectOrder) error {
	switch {
	case len(o.moves) == 0:
		return nil
	case o.moves[0].GetUpload():
		return o.upload(ctx)
	case o.attempt.ScratchDir() == "" || !o.attempt.AwaitsInput():
		return fmt.Errorf("attempt %v: %w: it does not wait for input", o.attempt.ID(), roost.Conflict)
	}
	d := &objectDownload{objectMover: o, ctx: ctx}
	defer d.close()
	recv := d.next
	var cached *inputcache.Transfer
	if o.server.inputs != nil {
		cached = o.server.inputs.Receive(inputcache.Owner{Schedd: first.GetSchedd(), User: o.attempt.Owner()}, recv)
		defer cached.Close()
		recv = cached.Next
	}
	_, _, err := userfiles.ReceiveEntries(ctx, recv, o.attempt.Agent(), o.attempt.ScratchDir(),
		o.attempt.InputFilter(first.GetTotals()))
	switch {
	case d.failure != nil:
		return d.failure
	case cached != nil && err == nil:
		o.server.countCached(cached.FromCache())
	case cached != nil && cached.IsMissing(err):
		return errMissingContents
	}
	return err
}

// objectDownload is objects that come, as the messages of a transfer of files.
type objectDownload struct {
	*objectMover
	ctx     context.Context
	index   int            // of the next move
	reader  *object.Reader // of the present object; nil: the next one begins
	sum     hash.Hash
	failure error // that an object store is at fault for
}

// next returns the next message.
func (d *objectDownload) next() (*wire.FileChunk, error) {
	if d.reader == nil {
		return d.begin()
	}
	data := make([]byte, userfiles.ChunkSize)
	n, err := io.ReadFull(d.reader, data)
	if n > 0 {
		d.sum.Write(data[:n])
		d.bytes.Add(int64(n))
		return &wire.FileChunk{Data: data[:n]}, nil
	}
	if !errors.Is(err, io.EOF) {
		d.failure = err
		return nil, err
	}
	return d.end()
}

// begin begins an object.
func (d *objectDownload) begin() (*wire.FileChunk, error) {
	if d.index == len(d.moves) {
		return nil, io.EOF
	}
	move := d.moves[d.index]
	d.current.Store(uint32(d.index))
	if move.GetCached() {
		d.index++
		d.bytes.Add(move.GetEntry().GetSize())
		return &wire.FileChunk{Entry: move.GetEntry(), Cached: true, Sha256: move.GetSha256()},
			d.report(&wire.ObjectReport{Moved: &wire.ObjectMoved{Move: uint32(d.index - 1), Sha256: move.GetSha256()}})
	}
	d.sum = sha256.New()
	d.reader = d.server.objects.Open(d.ctx, object.Info{Size: move.GetEntry().GetSize(), ETag: move.GetEtag()},
		d.source(d.index, 0))
	return &wire.FileChunk{Entry: move.GetEntry(), Cacheable: move.GetCacheable()}, nil
}

// end ends an object, and compares it with its digest.
func (d *objectDownload) end() (*wire.FileChunk, error) {
	d.close()
	move, sum := d.moves[d.index], d.sum.Sum(nil)
	if want := move.GetSha256(); len(want) > 0 && string(want) != string(sum) {
		d.failure = &object.StoreError{Status: 422, Code: "WrongDigest",
			Text: "its contents do not have the SHA-256 that was noted when they were stored"}
		return nil, d.failure
	}
	d.index++
	return &wire.FileChunk{Eof: true, Sha256: sum},
		d.report(&wire.ObjectReport{Moved: &wire.ObjectMoved{Move: uint32(d.index - 1), Sha256: sum}})
}

func (d *objectDownload) close() {
	if d.reader != nil {
		d.reader.Close()
		d.reader = nil
	}
}

// upload uploads outputs of an attempt that has ended: of its files only those that were
// listed.
func (o *objectMover) upload(ctx context.Context) error {
	select {
	case <-o.attempt.Ended():
	case <-ctx.Done():
		return ctx.Err()
	}
	listed := make(map[string]userfiles.TransferEntry, len(o.attempt.Outputs()))
	for _, e := range o.attempt.Outputs() {
		listed[e.Name] = e
	}
	for i, move := range o.moves {
		e, ok := listed[move.GetEntry().GetName()]
		if !ok || e.Dir || e.Size != move.GetEntry().GetSize() || move.GetPartSize() <= 0 {
			return fmt.Errorf("output %.200q of attempt %v: %w", move.GetEntry().GetName(), o.attempt.ID(),
				roost.NotFound)
		}
		o.current.Store(uint32(i))
		moved, err := o.uploadFile(ctx, i, move, e)
		if err != nil {
			return err
		}
		if err := o.report(&wire.ObjectReport{Moved: moved, Bytes: o.bytes.Load()}); err != nil {
			return err
		}
	}
	return nil
}

// uploadFile uploads the parts of a file that the object store does not have.
func (o *objectMover) uploadFile(ctx context.Context, index int, move *wire.ObjectMove,
	e userfiles.TransferEntry) (*wire.ObjectMoved, error) {
	there := make(map[uint32]*wire.ObjectPart, len(move.GetParts()))
	for _, p := range move.GetParts() {
		there[p.GetNumber()] = p
	}
	moved, sum := &wire.ObjectMoved{Move: uint32(index)}, sha256.New()
	for number, at := uint32(1), int64(0); number == 1 || at < e.Size; number++ {
		part := filePart{mover: o, file: e, at: at, size: min(move.GetPartSize(), e.Size-at)}
		body, err := part.body(ctx, sum)
		if err != nil {
			return nil, err
		}
		tag := body.ETag()
		if p := there[number]; p.GetSize() != part.size || p.GetEtag() != tag {
			if tag, err = o.server.objects.PutPart(ctx, body, o.source(index, number)); err != nil {
				return nil, err
			}
		}
		o.bytes.Add(part.size)
		moved.Parts = append(moved.Parts, &wire.ObjectPart{Number: number, Etag: tag, Size: part.size})
		at += part.size
	}
	moved.Sha256 = sum.Sum(nil)
	return moved, nil
}

// filePart is a part of a file that is uploaded. It is read twice: its digest goes ahead
// of it.
type filePart struct {
	mover    *objectMover
	file     userfiles.TransferEntry
	at, size int64
}

// body computes the digest of the part, and adds the part to that of the file.
func (p filePart) body(ctx context.Context, whole hash.Hash) (object.PartBody, error) {
	from, err := p.open(ctx)
	if err != nil {
		return object.PartBody{}, err
	}
	defer from.Close()
	sum := md5.New()
	n, err := io.Copy(io.MultiWriter(sum, whole), io.LimitReader(from, p.size))
	if err != nil {
		return object.PartBody{}, err
	}
	if n < p.size {
		return object.PartBody{}, fmt.Errorf("%s: %w: it changed while it was uploaded: it had %d bytes, and now %d",
			path.Base(p.file.Source), roost.NoInput, p.file.Size, p.at+n)
	}
	return object.PartBody{Size: p.size, MD5: [md5.Size]byte(sum.Sum(nil)), Open: p.open}, nil
}

func (p filePart) open(ctx context.Context) (io.ReadCloser, error) {
	source := p.file.Source
	if source == "" {
		source = p.file.Name
	}
	return p.mover.attempt.Agent().Open(ctx, p.mover.attempt.ScratchDir(), source, p.at)
}
