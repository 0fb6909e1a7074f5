package transfer

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strconv"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// wireSlurm is what the startd has to know of a job of sbatch.
func wireSlurm(p *queue.SlurmProgram) *wire.SlurmProgram {
	if p == nil {
		return nil
	}
	return &wire.SlurmProgram{Id: strconv.FormatUint(p.Number, 10), AppendOutput: p.Append, Signal: p.Signal,
		SignalBeforeNs: int64(p.Before), SignalScript: p.ScriptOnly}
}

// slurmVariables are those that change from one attempt to the next.
func slurmVariables(p *queue.SlurmProgram) []string {
	if p == nil || p.Restarts == 0 {
		return nil
	}
	return []string{"SLURM_RESTART_COUNT=" + strconv.Itoa(p.Restarts)}
}

// appendPiece is how much is appended to a file at once.
const appendPiece = 256 << 10

// appendFile appends a stream to a file of the job's owner, which several tasks may
// share. What was written in an earlier try of this process is not written again. After
// an end of the process meanwhile it is.
func (c *OutputFetch) appendFile(ctx context.Context, target string, stderr bool, from io.Reader) error {
	agent, err := c.users.Agent(c.UID, c.GID)
	if err != nil {
		return err
	}
	done := &c.appended[0]
	if stderr {
		done = &c.appended[1]
	}
	if _, err := io.CopyN(io.Discard, from, *done); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	path := AbsolutePath(c.Iwd, target)
	piece := make([]byte, appendPiece)
	for first := *done == 0; ; first = false {
		n, readErr := io.ReadFull(from, piece)
		if n > 0 || first {
			if err := agent.AppendOrCreate(ctx, filepath.Dir(path), filepath.Base(path), piece[:n]); err != nil {
				return c.wireError(err)
			}
			*done += int64(n)
		}
		switch {
		case errors.Is(readErr, io.EOF), errors.Is(readErr, io.ErrUnexpectedEOF):
			return nil
		case readErr != nil:
			return readErr
		}
	}
}
