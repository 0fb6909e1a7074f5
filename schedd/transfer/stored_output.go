package transfer

import (
	"context"
	"io"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/queue"
)

// spoolAndStore stores a captured stream. It stays in the spool too, where it is read
// first.
func (c *OutputFetch) spoolAndStore(ctx context.Context, stderr bool, from io.Reader) error {
	if err := c.spoolStream(stderr, from); err != nil {
		return err
	}
	name, size, err := c.storeSpooled(ctx, c.SpoolFiles.Path(c.Attempt, stderr), c.ScriptNode, c.UID)
	if stderr {
		c.stored.Err, c.stored.ErrBytes = name, size
	} else {
		c.stored.Out, c.stored.OutBytes = name, size
	}
	return err
}

// storeFiles stores the output files that come, if they are those of the list.
func (c *OutputFetch) storeFiles(ctx context.Context, recv func() (*wire.FileChunk, error),
	list []*wire.FileEntry) error {
	f, err := c.SpoolFiles.createTemporary()
	if err != nil {
		return err
	}
	defer f.Close()
	totals := &wire.TransferTotals{Files: uint64(len(list))}
	for _, e := range list {
		totals.Bytes += e.GetSize()
	}
	send, err := userfiles.WriteStored(f, totals)
	if err == nil {
		err = userfiles.CopyEntries(recv, c.expectedFiles(list), send)
	}
	if journal.IsDiskFull(err) {
		return c.waitForRoom(err)
	}
	if err != nil {
		return c.stream.stopCause(rpc.FromStatus(err))
	}
	c.stored.Files, err = c.putTemporary(ctx, f, c.ScriptNode, c.UID)
	c.stored.FileCount, c.stored.FileBytes = int64(totals.GetFiles()), int64(totals.GetBytes())
	return err
}

// RestoreSpool brings a captured stream back into the spool, on a host that does not have
// it.
func RestoreSpool(ctx context.Context, t *FileTransfers, a roost.AttemptID, stderr bool, u queue.UserScript) error {
	return t.ReadStoredFile(ctx, u, 0, func(r io.Reader) error { return t.SpoolFiles.Store(a, stderr, 0, r) })
}
