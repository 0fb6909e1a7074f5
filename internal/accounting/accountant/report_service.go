package accountant

import (
	"context"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/wire"
)

// reportService implements wire.AccountantServer.
type reportService struct {
	wire.UnimplementedAccountantServer
	*accountant
}

// Report answers a question of a user, which their schedd passes on.
func (s *reportService) Report(req *wire.AccountingQuery,
	stream grpc.ServerStreamingServer[wire.AccountingPiece]) error {
	ctx := stream.Context()
	q, err := s.permittedQuery(ctx, req)
	if err != nil {
		return err
	}
	w := lineWriter{send: func(lines []byte) error { return stream.Send(&wire.AccountingPiece{Lines: lines}) }}
	now := query.Now{Sources: s.states(), Live: s.live.get}
	if err := q.Answer(s.store.Reader(ctx), s.store.Reporter(ctx), &now, w.add); err != nil {
		return err
	}
	return w.flush()
}

// Change makes a change for a user, which their schedd passes on.
func (s *reportService) Change(ctx context.Context, req *wire.AccountingChange) (*wire.AccountingResult, error) {
	caller, err := callerOf(ctx, req.GetWho(), req.GetTrusted())
	if err != nil {
		return nil, err
	}
	c, err := query.ParseChange(req.GetChange())
	if err != nil {
		return nil, err
	}
	if err := s.mayChange(ctx, caller); err != nil {
		s.audit.write(caller.who, &c, err)
		return nil, err
	}
	document, err := s.apply(ctx, &c, caller.who)
	if aerr := s.audit.write(caller.who, &c, err); aerr != nil && err == nil {
		s.log.Error("a change of the accounts is made, and its audit line cannot be written", "error", aerr)
	}
	return &wire.AccountingResult{Document: document}, err
}

// lineWriter gathers lines into pieces.
type lineWriter struct {
	send  func(lines []byte) error
	lines []byte
}

// pieceBytes is about how long a piece is.
const pieceBytes = 64 << 10

func (w *lineWriter) add(line []byte) error {
	if w.lines = append(append(w.lines, line...), '\n'); len(w.lines) < pieceBytes {
		return nil
	}
	return w.flush()
}

func (w *lineWriter) flush() error {
	if len(w.lines) == 0 {
		return nil
	}
	lines := w.lines
	w.lines = nil
	return w.send(lines)
}
