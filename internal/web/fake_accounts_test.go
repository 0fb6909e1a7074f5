package web

import (
	"encoding/json"
	"fmt"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/wire"
)

// Accounting answers a report with one line, whose texts the test chooses.
func (f *fakeSchedd) Accounting(r *wire.AccountingQuery, to grpc.ServerStreamingServer[wire.AccountingPiece]) error {
	if _, err := f.caller(to.Context()); err != nil {
		return err
	}
	q, err := query.Parse(r.GetQuery())
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.queries = append(f.queries, q)
	f.mu.Unlock()
	lines := map[string]any{
		query.Usage: query.UsageLine{Owner: f.text, Amounts: accounting.Amounts{Ended: 1, HeldCPU: 7.2e6}},
	}
	line, known := lines[q.Report]
	if !known {
		return nil
	}
	text, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("line: %w", err)
	}
	return to.Send(&wire.AccountingPiece{Lines: append(text, '\n')})
}
