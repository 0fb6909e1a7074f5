package frame

import (
	"context"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// UnreachableSchedd is a schedd whose jobs are missing in a list.
type UnreachableSchedd struct {
	Node   string `json:"node"`
	Reason string `json:"why"`
}

// QueryPool asks all schedds about jobs, the newest first, and returns which schedds did
// not answer.
func (c *Invocation) QueryPool(at string,
	req *scheddapi.QueryRequest) (found []*scheddapi.JobStatus, missing []UnreachableSchedd, err error) {
	s, at, err := c.JobReader(at)
	if err != nil {
		return nil, nil, err
	}
	err = c.Retry(AskTimeout, func(ctx context.Context, _ func()) error {
		ctx, cancel := context.WithTimeout(ctx, AskTimeout+30*time.Second)
		defer cancel()
		stream, err := s.QueryPool(ctx, &scheddapi.PoolQuery{Query: req, At: at})
		if err != nil {
			return err
		}
		found, missing, err = readPoolRows(stream)
		return err
	})
	return found, missing, err
}

// readPoolRows takes the rows of an answer apart.
func readPoolRows(stream scheddapi.Receiver[scheddapi.PoolRow]) (found []*scheddapi.JobStatus,
	missing []UnreachableSchedd, err error) {
	for {
		row, err := stream.Recv()
		if err == io.EOF {
			return found, missing, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if missing, err = PassRow(row, missing, func(s *scheddapi.JobStatus) error {
			found = append(found, s)
			return nil
		}); err != nil {
			return nil, nil, err
		}
	}
}

// PrintUnreachable prints which schedds did not answer, so that their jobs are missing.
func (c *Invocation) PrintUnreachable(missing []UnreachableSchedd) {
	for _, m := range missing {
		fmt.Fprintf(c.Stderr, "%s %s: its jobs are not shown\n", m.Node, m.Reason)
	}
}

// UnreachableError is the error for a question about a single job that its schedd did not
// answer.
func UnreachableError(missing []UnreachableSchedd) error {
	if len(missing) == 0 {
		return nil
	}
	return KindErrorf(roost.Unavailable, "%s %s", missing[0].Node, missing[0].Reason)
}

// NamesOnlyTasks reports whether all selectors name tasks: "123[7]" and "123[1-5]", and
// not "123[]".
func NamesOnlyTasks(list []string) bool {
	for _, s := range list {
		open := -1
		for i := range s {
			if s[i] == '[' {
				open = i
			}
		}
		if open < 0 || open+1 >= len(s) || s[open+1] == ']' {
			return false
		}
	}
	return true
}

// PassRow calls f with each job of one message, and appends a schedd that is silent to
// missing.
func PassRow(row *scheddapi.PoolRow, missing []UnreachableSchedd,
	f func(*scheddapi.JobStatus) error) ([]UnreachableSchedd, error) {
	switch of := row.GetOf().(type) {
	case *scheddapi.PoolRow_Silent:
		return append(missing, UnreachableSchedd{of.Silent.GetNode(), document.PrintableText(of.Silent.GetWhy())}), nil
	case *scheddapi.PoolRow_Status:
		return missing, f(of.Status)
	}
	for _, text := range row.GetBatch().GetJobs() {
		s := &scheddapi.JobStatus{}
		err := proto.Unmarshal(text, s)
		if err == nil {
			err = f(s)
		}
		if err != nil {
			return missing, err
		}
	}
	return missing, nil
}
