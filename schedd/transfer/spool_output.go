package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/journal"
)

// A job may run for a day and then find that the directory for its output is gone, full,
// or somebody else's. A job file's is held, and does its work again when its user has
// seen to that. One of qsub has ended when it has ended: as PBS keeps what it cannot
// deliver, the spool does, and roost logs prints it.

// shouldSpool reports whether a stream that could not be put where its job wants it is
// kept in the spool.
func (c *OutputFetch) shouldSpool(ctx context.Context, err error) bool {
	if _, bad := isNodeFault(err); bad {
		return false
	}
	return err != nil && c.FromQsub && ctx.Err() == nil && !errors.Is(err, roost.Unavailable) &&
		!errors.Is(err, context.Canceled)
}

// spool puts a stream in the spool, for a reason.
func (c *OutputFetch) spool(ctx context.Context, stderr bool, why error) error {
	from, err := c.streamReader(ctx, stderr)
	if err == nil {
		err = c.spoolStream(stderr, from)
	}
	if err == nil && c.spoolReason == nil {
		c.spoolReason = why
	}
	return err
}

// spoolStream puts a stream in the spool. That there is no room is the fault of this
// node, of which neither the job nor its user can mend anything: it is tried again until
// there is, and the attempt waits.
func (c *OutputFetch) spoolStream(stderr bool, from io.Reader) error {
	err := c.SpoolFiles.Store(c.Attempt, stderr, c.streamStart(stderr), from)
	if err == nil {
		if terr := c.SpoolFiles.StoreTimes(c.Attempt, stderr, c.streamTimes(stderr)); terr != nil {
			c.log.Warn("the times of output cannot be stored", "attempt", c.Attempt, "error", terr)
		}
	}
	if c.logs != nil {
		return c.retainServiceLogs(stderr, err)
	}
	if journal.IsDiskFull(err) {
		return c.waitForRoom(err)
	}
	return c.wireError(err)
}

// waitForRoom makes of the error that the spool is full one for which it is tried again.
func (c *OutputFetch) waitForRoom(err error) error {
	if !c.waitedForSpool {
		c.log.Warn("output waits for room", "attempt", c.Attempt, "error", err, "cure",
			"make room in "+c.SpoolFiles.Dir+", or remove the task")
	}
	c.waitedForSpool = true
	return fmt.Errorf("%w: %w", roost.Unavailable, err)
}

// streamReader is a captured stream from its beginning.
func (c *OutputFetch) streamReader(ctx context.Context, stderr bool) (io.Reader, error) {
	data, size := c.Exited.GetStdout(), c.Exited.GetStdoutSize()
	if stderr {
		data, size = c.Exited.GetStderr(), c.Exited.GetStderrSize()
	}
	if int64(len(data)) == size {
		return bytes.NewReader(data), nil
	}
	return c.fetchStream(ctx, stderr)
}

// spooledStatus is how an attempt ended whose output is in the spool, for a reason.
func spooledStatus(status *wire.ExitStatus, why error) *wire.ExitStatus {
	status = proto.CloneOf(status)
	text := fmt.Sprintf("its output cannot be stored: %v; roost logs prints it", why)
	if status.Reason != "" {
		text = status.Reason + "; " + text
	}
	status.Reason = text
	return status
}
