package cell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cellhistory"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/schedd/queue"
)

// maxCheckpoint bounds a checkpoint of a cell, packed, in bytes. One of a hundred
// thousand machines has about a hundred megabytes.
const maxCheckpoint = 1 << 30

// cellCheckpoint writes a checkpoint of the cell to a file, or to standard output.
func cellCheckpoint(c *frame.Invocation, file string) error {
	if file == "" && c.OutScreen.Terminal {
		return frame.WithHint(frame.UsageErrorf("a checkpoint is nothing to look at"),
			"name a file: roost cell checkpoint FILE; what is in it shows: gunzip < FILE")
	}
	p, err := captureCell(c)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := cellstate.Write(&text, p); err != nil {
		return err
	}
	if file == "" || file == "-" {
		_, err := c.Stdout.Write(text.Bytes())
		return err
	}
	if err := c.WriteNewFile(file, text.String()); err != nil {
		return err
	}
	warnOfSilentSchedds(c, p)
	return nil
}

func warnOfSilentSchedds(c *frame.Invocation, p *cellstate.CellCheckpoint) {
	for _, node := range p.SilentSchedds {
		fmt.Fprintf(c.Stderr, "the schedd of %s does not answer: nobody knows which of its jobs are in which request\n",
			node)
	}
}

// storeCheckpoint adds a checkpoint to those in a directory, and removes old ones.
func storeCheckpoint(c *frame.Invocation, dir, maxAge string) error {
	age := time.Duration(0)
	if maxAge != "" {
		var err error
		if age, err = roost.ParseDuration(maxAge); err != nil || age <= 0 {
			return frame.UsageErrorf("--keep %s: it is no length of time, such as 14d", maxAge)
		}
	}
	p, err := captureCell(c)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := cellstate.Write(&text, p); err != nil {
		return err
	}
	if err := cellhistory.Write(c.AbsolutePath(dir), p.Now, text.Bytes(), age); err != nil {
		return err
	}
	warnOfSilentSchedds(c, p)
	return nil
}

// captureCell asks the leader for a checkpoint of the cell, and the schedds which jobs
// are in which request.
func captureCell(c *frame.Invocation) (*cellstate.CellCheckpoint, error) {
	text, err := requestCellCheckpoint(c)
	if err != nil {
		return nil, err
	}
	p, err := cellstate.Read(bytes.NewReader(text))
	if err != nil {
		return nil, frame.KindErrorf(roost.Internal, "what the negotiator wrote cannot be read: %v", err)
	}
	found, missing, err := c.QueryPool("", &scheddapi.QueryRequest{Selection: &scheddapi.Selection{}, Table: true,
		Ads:        true,
		Attributes: []string{roost.AttrGroup, roost.AttrMaxRunning}})
	if err != nil {
		return nil, err
	}
	p.Jobs = nil
	for _, s := range found {
		if j := checkpointJob(s); j.OpenTasks > 0 {
			p.Jobs = append(p.Jobs, j)
		}
	}
	for _, m := range missing {
		p.SilentSchedds = append(p.SilentSchedds, m.Node)
	}
	return p, nil
}

// checkpointJob is a job as a checkpoint has it.
func checkpointJob(s *scheddapi.JobStatus) cellstate.JobRow {
	j := cellstate.JobRow{
		ID: s.GetId(), Name: s.GetName(), Owner: s.GetOwner(), Request: s.GetRequestId(), Priority: s.GetPriority(),
		Submitted: s.GetSubmitted(), Band: s.GetBand(),
		Waiting: int(s.GetCounts()[roost.Idle.String()]),
		Running: int(s.GetCounts()[roost.Running.String()] + s.GetCounts()[roost.Starting.String()]),
	}
	for name, n := range s.GetCounts() {
		if state, err := roost.ParseTaskState(name); err == nil && !state.IsFinal() {
			j.OpenTasks += int(n)
		}
	}
	j.RequestedResources(s.GetRequest().Vector())
	if ad, err := classad.Parse(s.GetAd()); err == nil {
		j.Group, _ = ad.Str(roost.AttrGroup)
		most, _ := ad.Int(roost.AttrMaxRunning)
		j.MaxRunning = int(most)
	}
	if j.Waiting+j.Running == 0 {
		j.WaitReason, j.Refused = s.GetReason(), queue.IsQuotaRefusal(s.GetReason())
	}
	return j
}

// requestCellCheckpoint is what the leader writes.
func requestCellCheckpoint(c *frame.Invocation) (text []byte, err error) {
	s, err := c.ConnectSchedd()
	if err != nil {
		return nil, err
	}
	err = c.Retry(frame.AskTimeout, func(ctx context.Context, alive func()) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		text = nil
		from, err := s.CheckpointCell(ctx, &scheddapi.CheckpointCellRequest{})
		for err == nil {
			var piece *scheddapi.CheckpointPiece
			if piece, err = from.Recv(); err == nil {
				alive()
				text = append(text, piece.GetData()...)
			}
			if len(text) > maxCheckpoint {
				return frame.KindErrorf(roost.Exhausted, "the checkpoint has more than %v", roost.Bytes(maxCheckpoint))
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return err
	})
	return text, err
}

// ReadCellCheckpoint reads a checkpoint from a file, or from standard input for "-". For
// "" it takes one of the pool.
func ReadCellCheckpoint(c *frame.Invocation, file string) (*cellstate.CellCheckpoint, error) {
	if file == "" {
		return captureCell(c)
	}
	in, shown := c.Stdin, "standard input"
	if file != "-" {
		f, err := os.Open(c.AbsolutePath(file))
		if err != nil {
			var path *fs.PathError
			errors.As(err, &path)
			return nil, frame.KindErrorf(roost.NoInput, "%s: %v", document.PrintableText(file), path.Err)
		}
		defer f.Close()
		in, shown = f, document.PrintableText(file)
	}
	p, err := cellstate.Read(io.LimitReader(in, maxCheckpoint))
	if err != nil {
		return nil, frame.KindErrorf(roost.Invalid, "%s: %s", shown,
			strings.TrimPrefix(err.Error(), roost.Invalid.Error()+": "))
	}
	return p, nil
}
