package accountant

import (
	"google.golang.org/grpc"

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
	if err := q.Answer(s.store.Reader(ctx), s.store.Reporter(ctx), s.states(), w.add); err != nil {
		return err
	}
	return w.flush()
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
